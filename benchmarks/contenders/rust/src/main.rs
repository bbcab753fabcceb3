// The contender in Rust. `programs.py` describes its requests and answers.
use mongodb::bson::{doc, from_bson, Document};
use mongodb::change_stream::{event::ChangeStreamEvent, ChangeStream};
use mongodb::options::InsertManyOptions;
use mongodb::{Client, Cursor, Database};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

type Failure = Box<dyn std::error::Error>;

// Each caller has a change stream with its own events.
struct Caller {
    client: Client,
    database: Database,
    inputs: Document,
    number: u32,
    stream: Option<ChangeStream<ChangeStreamEvent<Document>>>,
}

async fn drain(mut cursor: Cursor<Document>) -> Result<u32, Failure> {
    let mut count = 0;
    while cursor.advance().await? {
        let _: Document = cursor.deserialize_current()?;
        count += 1;
    }
    Ok(count)
}

impl Caller {
    fn part(&self, name: &str) -> Result<Document, Failure> {
        Ok(self.inputs.get_document(name)?.clone())
    }

    async fn find(&self, collection: &str) -> Result<u32, Failure> {
        drain(self.database.collection::<Document>(collection).find(doc! {}).await?).await
    }

    async fn aggregate(&self) -> Result<u32, Failure> {
        let stages = self.inputs.get_array("pipeline")?.iter().cloned().map(from_bson);
        let pipeline = stages.collect::<Result<Vec<Document>, _>>()?;
        drain(self.database.collection::<Document>("hundred").aggregate(pipeline).await?).await
    }

    // The driver's bulk write needs MongoDB 8.0. `insert_many` sends the same command as other drivers' bulk writes.
    async fn bulk(&self) -> Result<u32, Failure> {
        let documents = vec![self.part("unsaved")?; 1000];
        let bulk = self.database.collection::<Document>("bulk");
        let options = InsertManyOptions::builder().ordered(true).build();
        Ok(bulk.insert_many(&documents).with_options(options).await?.inserted_ids.len() as u32)
    }

    async fn transaction(&self) -> Result<u32, Failure> {
        let mut session = self.client.start_session().await?;
        let writes = self.database.collection::<Document>("transactions");
        let one = self.database.collection::<Document>("one");
        session.start_transaction().await?;
        writes.insert_one(&self.part("unsaved")?).session(&mut session).await?;
        let document = one.find_one(self.part("query")?).session(&mut session).await?;
        writes.insert_one(&self.part("unsaved")?).session(&mut session).await?;
        session.commit_transaction().await?;
        Ok(if document.is_some() { 3 } else { 0 })
    }

    async fn change(&mut self) -> Result<u32, Failure> {
        let bulk = self.database.collection::<Document>("bulk");
        if self.stream.is_none() {
            let filter = vec![doc! {"$match": {"fullDocument.caller": self.number}}];
            self.stream = Some(bulk.watch().pipeline(filter).await?);
        }
        bulk.insert_one(&doc! {"caller": self.number}).await?;
        while let Some(stream) = self.stream.as_mut() {
            if stream.next_if_any().await?.is_some() {
                break;
            }
        }
        Ok(1)
    }

    async fn first(&self) -> Result<u32, Failure> {
        let uri = std::env::args().nth(1).ok_or("no connection string")?;
        let client = Client::with_uri_str(&uri).await?;
        let one = client.database("benchmark").collection::<Document>("one");
        let document = one.find_one(self.part("query")?).await?;
        client.shutdown().await;
        Ok(document.is_some() as u32)
    }

    async fn run(&mut self, kind: u8) -> Result<u32, Failure> {
        let one = self.database.collection::<Document>("one");
        Ok(match kind {
            0 => one.find_one(self.part("query")?).await?.is_some() as u32,
            1 => one.insert_one(&self.part("unsaved")?).await.map(|_| 1)?,
            2 => one.update_one(self.part("query")?, self.part("change")?).await?.matched_count as u32,
            3 => self.find("hundred").await?,
            4 => self.find("megabyte").await?,
            5 => self.find("large").await?,
            6 => self.aggregate().await?,
            7 => self.bulk().await?,
            8 => self.transaction().await?,
            9 => self.change().await?,
            _ => self.first().await?,
        })
    }

    async fn serve(mut self, path: String) -> Result<(), Failure> {
        let mut stream = UnixStream::connect(path).await?;
        loop {
            let code = match stream.read_u32().await {
                Ok(code) => code,
                Err(_) => return Ok(()), // the stream has ended
            };
            let mut sum = 0;
            for _ in 0..code & 0xff_ffff {
                sum += self.run((code >> 24) as u8).await?;
            }
            stream.write_u32(sum).await?;
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let inputs = Document::from_reader(std::fs::File::open(&arguments[4])?)?;
    let client = Client::with_uri_str(&arguments[1]).await?;
    let database = client.database("benchmark");
    let local = tokio::task::LocalSet::new();
    let callers: Vec<_> = (0..arguments[3].parse()?)
        .map(|number| {
            let (client, database, inputs) = (client.clone(), database.clone(), inputs.clone());
            local.spawn_local(Caller { client, database, inputs, number, stream: None }.serve(arguments[2].clone()))
        })
        .collect();
    local
        .run_until(async {
            for caller in callers {
                caller.await??;
            }
            Ok(())
        })
        .await
}
