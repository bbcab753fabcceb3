"""Operations of the format by type of entity."""
