"""Operations of the unified test format. Most modules contain the operations of one entity type."""
