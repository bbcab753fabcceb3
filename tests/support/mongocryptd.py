"""Simulation of the program mongocryptd. The simulation supports only simple commands, and rejects
unsupported operators on encrypted fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import bson
from bson import Binary, Decimal128, MaxKey, MinKey, Timestamp
from bson.binary import UUID_SUBTYPE

from tests.support.scripted_server import ScriptedServer

_ALGORITHMS = {"AEAD_AES_256_CBC_HMAC_SHA_512-Deterministic": 1, "AEAD_AES_256_CBC_HMAC_SHA_512-Random": 2}
_ANALYSIS_FIELDS = frozenset({"jsonSchema", "isRemoteSchema", "csfleEncryptionSchemas", "encryptionInformation", "$db"})
_EQUALITY_OPERATORS = frozenset({"$eq", "$ne"})
_MARKING_SUBTYPE = 6
_RANDOM_ONLY_TYPES = (float, bool, Decimal128, Mapping, list)


class AnalysisError(Exception):
    """The simulated mongocryptd rejects the command."""


class Mongocryptd(ScriptedServer):
    """Context manager of a scripted server that acts as mongocryptd."""

    def __init__(self) -> None:
        names = "insert update delete find aggregate count distinct findAndModify create createIndexes collMod explain"
        super().__init__(dict.fromkeys(names.split(), analysis_reply))
        self.hello_extra = {"iscryptd": True}

    @property
    def uri(self) -> str:
        return f"mongodb://{self.name}/?directConnection=true"

    @property
    def analysed_commands(self) -> list[str]:
        """Names of the commands that mongocryptd has analyzed, in order of arrival."""
        return [each.name for each in self.received if each.name in self.replies and each.name != "hello"]


def analysis_reply(command: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply of mongocryptd: the command in which placeholders replace the values to
    encrypt.
    """
    schema = command.get("jsonSchema") or {}
    if "encryptionInformation" in command:
        schema = {}
    rest = {name: value for name, value in command.items() if name not in _ANALYSIS_FIELDS and name != "lsid"}
    marker = _Marker(schema)
    try:
        if schema.get("required") and not command.get("isRemoteSchema"):
            raise AnalysisError("JSON schema keyword 'required' is only allowed with a remote schema")
        result = marker.mark_command(rest)
    except AnalysisError as error:
        return {"ok": 0, "errmsg": str(error), "code": 51092, "codeName": "Location51092"}
    return {
        "ok": 1,
        "result": result,
        "hasEncryptedPlaceholders": marker.count > 0,
        "schemaRequiresEncryption": bool(_has_encrypted_field(schema)),
    }


def _has_encrypted_field(schema: Mapping[str, Any]) -> bool:
    return any("encrypt" in each or _has_encrypted_field(each) for each in schema.get("properties", {}).values())


def _check_top_level(name: str, value: Any) -> None:
    if name == "_id":
        raise AnalysisError("Invalid schema containing the 'encrypt' keyword. _id cannot be encrypted")
    if value == Timestamp(0, 0):
        raise AnalysisError("A command that inserts cannot supply Timestamp(0, 0) for an encrypted top-level field")


class _Marker:
    """Visitor of a command. The visitor puts a placeholder in the place of each value that the
    schema encrypts.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self.count = 0

    def mark_command(self, command: dict[str, Any]) -> dict[str, Any]:
        name = next(iter(command))
        markers: dict[str, Callable[[Any], Any]] = {
            "documents": lambda documents: [self.mark_document(document, self._schema) for document in documents],
            "updates": lambda updates: [self.mark_statement(update) for update in updates],
            "deletes": lambda deletes: [self.mark_statement(delete) for delete in deletes],
            "filter": self.mark_query,
            "query": self.mark_query,
            "update": lambda part: self.mark_update(part) if isinstance(part, Mapping) else part,
            "pipeline": lambda stages: [self.mark_stage(stage) for stage in stages],
            "explain": lambda inner: self.mark_command(dict(inner)) if isinstance(inner, Mapping) else inner,
        }
        if name == "distinct" and self.encryption_rule(command["key"]) is not None:
            self.check_deterministic(command["key"])
        return {field: markers[field](value) if field in markers else value for field, value in command.items()}

    def mark_statement(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        marked = {**statement, "q": self.mark_query(statement["q"])}
        if "u" in statement:
            marked["u"] = self.mark_update(statement["u"])
        return marked

    def mark_stage(self, stage: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.mark_query(value) if name == "$match" else value for name, value in stage.items()}

    def mark_update(self, update: Any) -> Any:
        if not isinstance(update, Mapping) or not next(iter(update), "").startswith("$"):
            return self.mark_document(update, self._schema)
        return {name: self.mark_changes(name, changes) for name, changes in update.items()}

    def mark_changes(self, operator: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        marked = {}
        for path, value in changes.items():
            rule = self.encryption_rule(path)
            if operator == "$rename":
                if rule != self.encryption_rule(value):
                    raise AnalysisError(
                        "$rename between two encrypted fields must have the same metadata or both be unencrypted"
                    )
                rule = None
            if rule is not None and operator not in ("$set", "$unset", "$setOnInsert"):
                raise AnalysisError(f"{operator} not allowed on encrypted values")
            marked[path] = value if rule is None or operator == "$unset" else self.mark_value(rule, value, {})
        return marked

    def mark_document(self, document: Any, schema: Mapping[str, Any]) -> Any:
        properties = schema.get("properties", {})
        marked = {}
        for name, value in document.items():
            inner = properties.get(name, {})
            if "encrypt" in inner:
                if schema is self._schema:
                    _check_top_level(name, value)
                marked[name] = self.mark_value(inner["encrypt"], value, document)
            else:
                marked[name] = self.mark_document(value, inner) if isinstance(value, Mapping) else value
        return marked

    def mark_query(self, query: Mapping[str, Any]) -> dict[str, Any]:
        marked: dict[str, Any] = {}
        for name, value in query.items():
            if name in ("$and", "$or", "$nor"):
                marked[name] = [self.mark_query(each) for each in value]
            elif self.encryption_rule(name) is None:
                marked[name] = value
            else:
                marked[name] = self.mark_condition(name, value)
        return marked

    def mark_condition(self, path: str, value: Any) -> Any:
        rule = self.encryption_rule(path)
        assert rule is not None
        if not isinstance(value, Mapping) or not next(iter(value), "").startswith("$"):
            self.check_deterministic(path)
            return {"$eq": self.mark_value(rule, value, {})}
        marked = {}
        for operator, operand in value.items():
            if operator == "$exists":
                marked[operator] = operand
            elif operator in _EQUALITY_OPERATORS:
                self.check_deterministic(path)
                marked[operator] = self.mark_value(rule, operand, {})
            elif operator in ("$in", "$nin"):
                self.check_deterministic(path)
                marked[operator] = [self.mark_value(rule, each, {}) for each in operand]
            else:
                raise AnalysisError(f"Invalid match expression operator on encrypted field '{path}': {operator}")
        return marked

    def check_deterministic(self, path: str) -> None:
        rule = self.encryption_rule(path)
        assert rule is not None
        if _ALGORITHMS[rule["algorithm"]] != 1:
            raise AnalysisError("Cannot query on fields encrypted with the randomized encryption algorithm")

    def encryption_rule(self, path: str) -> Mapping[str, Any] | None:
        """Return the ``encrypt`` object of a field in the schema, or None if the field is not
        encrypted.
        """
        schema: Mapping[str, Any] = self._schema
        for name in path.split("."):
            schema = schema.get("properties", {}).get(name, {})
        return schema.get("encrypt")

    def mark_value(self, rule: Mapping[str, Any], value: Any, document: Any) -> Binary:
        self.count += 1
        is_unencryptable = value is None or isinstance(value, (MinKey, MaxKey))
        if is_unencryptable or (_ALGORITHMS[rule["algorithm"]] == 1 and isinstance(value, _RANDOM_ONLY_TYPES)):
            raise AnalysisError(f"Cannot encrypt element of type: {type(value).__name__}")
        key = rule["keyId"]
        fields: dict[str, Any] = {"a": _ALGORITHMS[rule["algorithm"]]}
        if isinstance(key, str):
            if key.removeprefix("/") not in document:
                raise AnalysisError("A non-static (JSONPointer) keyId is not supported")
            fields["ka"] = document[key.removeprefix("/")]
        else:
            fields["ki"] = Binary(bytes(key[0]), UUID_SUBTYPE)
        marking: Binary = Binary(b"\x00" + bson.encode({**fields, "v": value}), _MARKING_SUBTYPE)
        return marking
