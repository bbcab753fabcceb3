module engine

go 1.22

require github.com/FerretDB/FerretDB v1.24.0
