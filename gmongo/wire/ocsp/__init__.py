"""OCSP: whether the certificate of a server has been revoked, by what the server staples to it and by what the
responder of its authority says. RFC 6960, RFC 7633, and MongoDB's specification of OCSP support.
"""
