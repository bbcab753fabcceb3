"""OCSP: revocation checks of server certificates, by stapled responses and by queries to responders.

Sources: RFC 6960, RFC 7633, and the OCSP Support specification of MongoDB.
"""
