// The contender in Node. `programs.py` describes its requests and answers.
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { BSON, MongoClient } from "mongodb";

const [uri, path, callers, file] = process.argv.slice(2);
const documents = BSON.deserialize(readFileSync(file));
const client = new MongoClient(uri);
const database = client.db("benchmark");
const one = database.collection("one");

async function count(cursor) {
  let total = 0;
  for await (const _document of cursor) total++;
  return total;
}

const drain = (collection) => count(database.collection(collection).find());
const unsaved = () => ({ ...documents.unsaved });
const bulk = database.collection("bulk");
const writes = database.collection("transactions");

function transaction() {
  return client.withSession(async (session) => {
    session.startTransaction();
    await writes.insertOne(unsaved(), { session });
    const document = await one.findOne(documents.query, { session });
    await writes.insertOne(unsaved(), { session });
    await session.commitTransaction();
    return document === null ? 0 : 3;
  });
}

// Each caller has a change stream with its own events. The driver opens the stream with the first `tryNext()`.
async function changeStream(caller) {
  if (!caller.stream) {
    caller.stream = bulk.watch([{ $match: { "fullDocument.caller": caller.number } }]);
    await caller.stream.tryNext();
  }
  await bulk.insertOne({ caller: caller.number });
  return Number((await caller.stream.next()) !== null);
}

async function firstOperation() {
  const client = new MongoClient(uri);
  const document = await client.db("benchmark").collection("one").findOne(documents.query);
  await client.close();
  return Number(document !== null);
}

const operations = [
  async () => Number((await one.findOne(documents.query)) !== null),
  async () => Number((await one.insertOne(unsaved())).acknowledged),
  async () => (await one.updateOne(documents.query, documents.change)).matchedCount,
  () => drain("hundred"),
  () => drain("megabyte"),
  () => drain("large"),
  () => count(database.collection("hundred").aggregate(documents.pipeline)),
  async () => {
    const models = Array.from({ length: 1000 }, () => ({ insertOne: { document: unsaved() } }));
    return (await bulk.bulkWrite(models)).insertedCount;
  },
  transaction,
  changeStream,
  firstOperation,
];

async function call(_nothing, number) {
  const caller = { number };
  const stream = connect(path);
  for await (const request of stream) {
    // A caller sends one request at a time, so the four bytes of a request arrive together.
    const code = request.readUInt32BE();
    let sum = 0;
    for (let count = code & 0xffffff; count > 0; count--) sum += await operations[code >>> 24](caller);
    const answer = Buffer.alloc(4);
    answer.writeUInt32BE(sum);
    stream.write(answer);
  }
}

await Promise.all(Array.from({ length: Number(callers) }, call));
await client.close();
