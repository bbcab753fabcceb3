// FerretDB with its SQLite backend: engine DIRECTORY HOST:PORT
package main

import (
	"context"
	"log"
	"os"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	f, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: os.Args[2]},
		Handler:   "sqlite",
		SQLiteURL: "file:" + os.Args[1] + "/",
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(f.Run(context.Background()))
}
