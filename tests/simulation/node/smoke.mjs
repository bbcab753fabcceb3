// What a driver of another language does with a simulated deployment: node smoke.mjs URI FAULT
import assert from "node:assert";
import { createRequire } from "node:module";

const { MongoClient } = createRequire(process.env.NODE_DRIVER + "/")("mongodb");
const [uri, topology] = process.argv.slice(2);
const client = new MongoClient(uri, { serverSelectionTimeoutMS: 10000 });
const orders = client.db("shop").collection("orders");

const line = () => new Promise((resolve) => process.stdin.once("data", resolve));

await orders.insertMany(Array.from({ length: 250 }, (_, number) => ({ _id: number, even: number % 2 === 0 })));
assert.equal((await orders.find({ even: true }).batchSize(20).toArray()).length, 125);
assert.equal((await orders.updateMany({ even: true }, { $set: { half: 1 } })).modifiedCount, 125);
assert.deepEqual(await orders.aggregate([{ $match: { half: 1 } }, { $count: "n" }]).toArray(), [{ n: 125 }]);
if (topology !== "standalone") {
  await client.withSession((session) =>
    session.withTransaction(() => orders.insertOne({ _id: "moved" }, { session })),
  );
  assert.ok(await orders.findOne({ _id: "moved" }));
}
console.log("ready"); // now something goes wrong
await line();
await orders.insertOne({ _id: "afterwards" });
assert.equal(await orders.countDocuments({ _id: "afterwards" }), 1);
await client.close();
console.log("done");
process.exit(0);
