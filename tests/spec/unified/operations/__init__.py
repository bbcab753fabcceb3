"""Operations of the unified test format. Each module contains the operations of one entity type."""
