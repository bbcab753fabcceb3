// This client uses the driver for Node. test_other_drivers.py describes the input of the client.
import assert from "node:assert";
import { createInterface } from "node:readline";
import { MongoClient } from "mongodb";

const [uri, kind] = process.argv.slice(2);
const client = new MongoClient(uri, { serverSelectionTimeoutMS: 10000 });
const orders = client.db("shop").collection("orders");

await orders.insertMany(Array.from({ length: 250 }, (_, number) => ({ _id: number, even: number % 2 === 0 })));
assert.equal((await orders.find({ even: true }).batchSize(20).toArray()).length, 125);
assert.equal((await orders.updateMany({ even: true }, { $set: { half: 1 } })).modifiedCount, 125);
assert.deepEqual(await orders.aggregate([{ $match: { half: 1 } }, { $count: "n" }]).toArray(), [{ n: 125 }]);
if (kind !== "standalone") {
  await client.withSession((session) =>
    session.withTransaction(() => orders.insertOne({ _id: "moved" }, { session })),
  );
  assert.ok(await orders.findOne({ _id: "moved" }));
}
// The driver raises this socket error unchanged, and therefore does not retry.
const retryPipeError = (call) => call().catch((error) => (error.code === "EPIPE" ? call() : Promise.reject(error)));

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [word, id] = line.split(" ");
  if (word === "read") console.log((await retryPipeError(() => orders.findOne({ _id: 2 }))).half);
  else console.log((await orders.insertOne({ _id: id })).insertedId);
}
await client.close();
