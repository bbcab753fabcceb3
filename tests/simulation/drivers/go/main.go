// This client uses the driver of Go. test_other_drivers.py describes the input of the client.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func check(holds bool, what string) {
	if !holds {
		panic(what)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	ctx := context.Background()
	settings := options.Client().ApplyURI(os.Args[1]).SetServerSelectionTimeout(10 * time.Second)
	client := must(mongo.Connect(settings))
	orders := client.Database("shop").Collection("orders")

	documents := make([]any, 250)
	for number := range documents {
		documents[number] = bson.M{"_id": number, "even": number%2 == 0}
	}
	must(orders.InsertMany(ctx, documents))
	var found []bson.M
	if err := must(orders.Find(ctx, bson.M{"even": true}, options.Find().SetBatchSize(20))).All(ctx, &found); err != nil {
		panic(err)
	}
	check(len(found) == 125, "find")
	changed := must(orders.UpdateMany(ctx, bson.M{"even": true}, bson.M{"$set": bson.M{"half": 1}}))
	check(changed.ModifiedCount == 125, "update")
	counted := must(orders.Aggregate(ctx, bson.A{bson.M{"$match": bson.M{"half": 1}}, bson.M{"$count": "n"}}))
	check(counted.Next(ctx) && counted.Current.Lookup("n").AsInt64() == 125, "aggregate")
	if os.Args[2] != "standalone" {
		session := must(client.StartSession())
		must(session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
			return orders.InsertOne(ctx, bson.M{"_id": "moved"})
		}))
		session.EndSession(ctx)
		check(orders.FindOne(ctx, bson.M{"_id": "moved"}).Err() == nil, "transaction")
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		word, id, _ := strings.Cut(lines.Text(), " ")
		if word == "read" {
			fmt.Println(must(orders.FindOne(ctx, bson.M{"_id": 2}).Raw()).Lookup("half").AsInt64())
		} else {
			fmt.Println(must(orders.InsertOne(ctx, bson.M{"_id": id})).InsertedID)
		}
	}
	if err := client.Disconnect(ctx); err != nil {
		panic(err)
	}
}
