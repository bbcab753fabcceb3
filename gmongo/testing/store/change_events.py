"""Convert oplog events to the documents that a change stream returns."""

from __future__ import annotations

from dataclasses import dataclass

from bson.binary import Binary

from gmongo.testing.command import CommandError, error
from gmongo.testing.store.data import Document
from gmongo.testing.store.differences import describe_update, disambiguate_paths
from gmongo.testing.store.oplog import Event, Position
from gmongo.testing.store.state import State


@dataclass(frozen=True)
class EventConverter:
    """A converter of oplog events to the documents that a change stream returns."""

    state: State  # the state of the deployment
    options: Document  # the options of the stage `$changeStream`

    def create_invalidation(self, position: Position, event: Event) -> Document:
        """Return the document of type ``invalidate``, which follows an event that ends the stream."""
        return _create_common_fields(position, "invalidate", event, self.state.version)

    def create_document(self, position: Position, event: Event) -> Document:
        target_fields = {"to": event.extra["to"]} if event.kind == "rename" else {}
        uuid = event.uuid if self.options.get("showExpandedEvents") else None
        document = {**target_fields, **_create_common_fields(position, event.kind, event, self.state.version, uuid)}
        document.update(event.session)
        if event.kind in ("insert", "replace"):
            document["fullDocument"] = event.after
        if event.kind == "update":
            document.update(self._create_post_image(event))
        document["ns"] = {"db": event.database, **({"coll": event.collection} if event.collection else {})}
        document.update(self._create_catalog_fields(event))
        image = event.after or event.before
        if image is not None:
            document["documentKey"] = {"_id": image["_id"]}
        if event.kind == "update" and event.before is not None and event.after is not None:
            description = describe_update(event.before, event.after, event.whole_paths, self.state.version)
            if self.options.get("showExpandedEvents") and self.state.version >= (6, 1):
                description["disambiguatedPaths"] = disambiguate_paths(event.before, event.after, description)
            document["updateDescription"] = description
        if event.kind in ("update", "replace", "delete"):
            document.update(self._create_pre_image(event))
        return document

    def _create_catalog_fields(self, event: Event) -> Document:
        fields = dict(event.extra)
        if event.kind == "rename" and self.options.get("showExpandedEvents"):
            dropped_id = fields.pop("dropTarget", None)
            fields["operationDescription"] = {"to": fields["to"], **({"dropTarget": dropped_id} if dropped_id else {})}
        fields.pop("dropTarget", None)
        if "nsType" in fields and self.state.version < (8, 1):
            del fields["nsType"]
        return fields

    def _create_post_image(self, event: Event) -> Document:
        mode = self.options.get("fullDocument", "default")
        if mode == "default":
            return {}
        if mode == "updateLookup":
            return {"fullDocument": _find_current_document(self.state, event)}
        if event.has_pre_images:
            return {"fullDocument": event.after}
        if mode == "required":
            raise _create_image_error("post-image")
        return {"fullDocument": None}

    def _create_pre_image(self, event: Event) -> Document:
        mode = self.options.get("fullDocumentBeforeChange", "off")
        if mode == "off":
            return {}
        if event.has_pre_images:
            return {"fullDocumentBeforeChange": event.before}
        if mode == "required":
            raise _create_image_error("pre-image")
        return {"fullDocumentBeforeChange": None}


def _create_common_fields(
    position: Position, kind: str, event: Event, version: tuple[int, int], uuid: Binary | None = None
) -> Document:
    fields: Document = {"_id": position.token(), "operationType": kind, "clusterTime": event.position.time}
    if uuid is not None:
        fields["collectionUUID"] = uuid
    if version >= (6, 0):
        fields["wallTime"] = event.wall_time
    return fields


def _find_current_document(state: State, event: Event) -> Document | None:
    collection = state.catalog.get((event.database, event.collection or ""))
    if collection is None or event.after is None or collection.uuid != event.uuid:
        return None
    record = collection.records.get(collection.key(event.after["_id"]))
    return record.document if record is not None else None


def _create_image_error(image_kind: str) -> CommandError:
    return error(47, f"Change stream was configured to require a {image_kind} for all update "
                        f"events, but the {image_kind} was not found")  # fmt: skip
