// The contender in Go. `programs.py` describes its requests and answers.
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

type inputs struct {
	Query, Change, Unsaved bson.M
	Pipeline               bson.A
}

// Each caller has a change stream with its own events.
type caller struct {
	inputs
	number   int
	client   *mongo.Client
	database *mongo.Database
	stream   *mongo.ChangeStream
}

func must[Value any](value Value, err error) Value {
	if err != nil {
		panic(err)
	}
	return value
}

func drain(cursor *mongo.Cursor, err error) uint32 {
	var count uint32
	for must(cursor, err).Next(background) {
		var document bson.M
		if err := cursor.Decode(&document); err != nil {
			panic(err)
		}
		count++
	}
	return count
}

func (c *caller) bulk() uint32 {
	models := make([]mongo.WriteModel, 1000)
	for index := range models {
		models[index] = mongo.NewInsertOneModel().SetDocument(c.Unsaved)
	}
	return uint32(must(c.database.Collection("bulk").BulkWrite(background, models)).InsertedCount)
}

func (c *caller) transaction() uint32 {
	session := must(c.client.StartSession())
	defer session.EndSession(background)
	writes := c.database.Collection("transactions")
	err := mongo.WithSession(background, session, func(within context.Context) error {
		if err := session.StartTransaction(); err != nil {
			return err
		}
		must(writes.InsertOne(within, c.Unsaved))
		var document bson.M
		if err := c.database.Collection("one").FindOne(within, c.Query).Decode(&document); err != nil {
			return err
		}
		must(writes.InsertOne(within, c.Unsaved))
		return session.CommitTransaction(within)
	})
	return must(uint32(3), err)
}

func (c *caller) change() uint32 {
	bulk := c.database.Collection("bulk")
	if c.stream == nil {
		match := bson.A{bson.M{"$match": bson.M{"fullDocument.caller": c.number}}}
		c.stream = must(bulk.Watch(background, match))
	}
	must(bulk.InsertOne(background, bson.M{"caller": c.number}))
	if !c.stream.Next(background) {
		panic(c.stream.Err())
	}
	var event bson.M
	return must(uint32(1), c.stream.Decode(&event))
}

func (c *caller) first() uint32 {
	client := must(mongo.Connect(options.Client().ApplyURI(os.Args[1])))
	var document bson.M
	one := client.Database("benchmark").Collection("one")
	must(0, one.FindOne(background, c.Query).Decode(&document))
	return must(uint32(1), client.Disconnect(background))
}

func (c *caller) run(kind uint32) uint32 {
	one := c.database.Collection("one")
	switch kind {
	case 0:
		var document bson.M
		return must(uint32(1), one.FindOne(background, c.Query).Decode(&document))
	case 1:
		must(one.InsertOne(background, c.Unsaved))
		return 1
	case 2:
		return uint32(must(one.UpdateOne(background, c.Query, c.Change)).MatchedCount)
	case 6:
		return drain(c.database.Collection("hundred").Aggregate(background, c.Pipeline))
	case 7:
		return c.bulk()
	case 8:
		return c.transaction()
	case 9:
		return c.change()
	case 10:
		return c.first()
	default:
		name := map[uint32]string{3: "hundred", 4: "megabyte", 5: "large"}[kind]
		return drain(c.database.Collection(name).Find(background, bson.M{}))
	}
}

func (c *caller) serve(path string) {
	stream := must(net.Dial("unix", path))
	buffer := make([]byte, 4)
	for {
		if _, err := io.ReadFull(stream, buffer); err != nil {
			return // the stream has ended
		}
		code := binary.BigEndian.Uint32(buffer)
		var sum uint32
		for count := code & 0xffffff; count > 0; count-- {
			sum += c.run(code >> 24)
		}
		binary.BigEndian.PutUint32(buffer, sum)
		must(stream.Write(buffer))
	}
}

func main() {
	var documents inputs
	if err := bson.Unmarshal(must(os.ReadFile(os.Args[4])), &documents); err != nil {
		panic(err)
	}
	client := must(mongo.Connect(options.Client().ApplyURI(os.Args[1])))
	var callers sync.WaitGroup
	for number := must(strconv.Atoi(os.Args[3])); number > 0; number-- {
		callers.Add(1)
		go func() {
			defer callers.Done()
			(&caller{documents, number, client, client.Database("benchmark"), nil}).serve(os.Args[2])
		}()
	}
	callers.Wait()
}
