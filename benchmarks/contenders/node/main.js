// The contender of Node: see `programs.py` for what it is asked, and what it answers.
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { BSON, MongoClient } from "mongodb";

const [uri, path, callers, file] = process.argv.slice(2);
const given = BSON.deserialize(readFileSync(file));
const client = new MongoClient(uri);
const database = client.db("benchmark");
const one = database.collection("one");

async function drain(collection) {
  let count = 0;
  for await (const _document of database.collection(collection).find()) count++;
  return count;
}

const operations = [
  async () => Number((await one.findOne(given.query)) !== null),
  async () => Number((await one.insertOne({ ...given.unsaved })).acknowledged),
  async () => (await one.updateOne(given.query, given.change)).matchedCount,
  () => drain("hundred"),
  () => drain("megabyte"),
];

async function call() {
  const stream = connect(path);
  for await (const request of stream) {
    // Each request is answered before the next one comes, and four bytes never come in pieces.
    const wanted = request.readUInt32BE();
    let sum = 0;
    for (let count = wanted & 0xffffff; count > 0; count--) sum += await operations[wanted >>> 24]();
    const answer = Buffer.alloc(4);
    answer.writeUInt32BE(sum);
    stream.write(answer);
  }
}

await Promise.all(Array.from({ length: Number(callers) }, call));
await client.close();
