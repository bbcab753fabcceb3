"""OCSP: revocation checks of server certificates, with stapled responses and responders.

Sources: RFC 6960, RFC 7633, and the OCSP Support specification of MongoDB.
"""
