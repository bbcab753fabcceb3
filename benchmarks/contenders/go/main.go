// The contender of Go: see `programs.py` for what it is asked, and what it answers.
package main

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"strconv"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

var background = context.Background()

func must[Value any](value Value, err error) Value {
	if err != nil {
		panic(err)
	}
	return value
}

func drain(collection *mongo.Collection) uint32 {
	cursor := must(collection.Find(background, bson.M{}))
	var count uint32
	for cursor.Next(background) {
		var document bson.M
		if err := cursor.Decode(&document); err != nil {
			panic(err)
		}
		count++
	}
	return count
}

func run(kind uint32, database *mongo.Database, given map[string]bson.M) uint32 {
	one := database.Collection("one")
	switch kind {
	case 0:
		var document bson.M
		if err := one.FindOne(background, given["query"]).Decode(&document); err != nil {
			panic(err)
		}
		return 1
	case 1:
		must(one.InsertOne(background, given["unsaved"]))
		return 1
	case 2:
		return uint32(must(one.UpdateOne(background, given["query"], given["change"])).MatchedCount)
	case 3:
		return drain(database.Collection("hundred"))
	default:
		return drain(database.Collection("megabyte"))
	}
}

func call(path string, database *mongo.Database, given map[string]bson.M) {
	stream := must(net.Dial("unix", path))
	buffer := make([]byte, 4)
	for {
		if _, err := io.ReadFull(stream, buffer); err != nil {
			return // the end
		}
		wanted := binary.BigEndian.Uint32(buffer)
		var sum uint32
		for count := wanted & 0xffffff; count > 0; count-- {
			sum += run(wanted>>24, database, given)
		}
		binary.BigEndian.PutUint32(buffer, sum)
		must(stream.Write(buffer))
	}
}

func main() {
	var given map[string]bson.M
	if err := bson.Unmarshal(must(os.ReadFile(os.Args[4])), &given); err != nil {
		panic(err)
	}
	database := must(mongo.Connect(options.Client().ApplyURI(os.Args[1]))).Database("benchmark")
	var callers sync.WaitGroup
	for count := must(strconv.Atoi(os.Args[3])); count > 0; count-- {
		callers.Add(1)
		go func() {
			defer callers.Done()
			call(os.Args[2], database, given)
		}()
	}
	callers.Wait()
}
