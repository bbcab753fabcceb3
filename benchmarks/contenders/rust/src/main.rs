// The contender of Rust: see `programs.py` for what it is asked, and what it answers.
use mongodb::bson::{doc, Document};
use mongodb::{Client, Database};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

type Failure = Box<dyn std::error::Error>;

async fn drain(database: &Database, collection: &str) -> Result<u32, Failure> {
    let mut cursor = database.collection::<Document>(collection).find(doc! {}).await?;
    let mut count = 0;
    while cursor.advance().await? {
        let _: Document = cursor.deserialize_current()?;
        count += 1;
    }
    Ok(count)
}

async fn run(kind: u8, database: &Database, given: &Document) -> Result<u32, Failure> {
    let one = database.collection::<Document>("one");
    let part = |name| given.get_document(name).cloned();
    Ok(match kind {
        0 => one.find_one(part("query")?).await?.is_some() as u32,
        1 => one.insert_one(&part("unsaved")?).await.map(|_| 1)?,
        2 => one.update_one(part("query")?, part("change")?).await?.matched_count as u32,
        3 => drain(database, "hundred").await?,
        _ => drain(database, "megabyte").await?,
    })
}

async fn call(path: String, database: Database, given: Document) -> Result<(), Failure> {
    let mut stream = UnixStream::connect(path).await?;
    loop {
        let wanted = match stream.read_u32().await {
            Ok(wanted) => wanted,
            Err(_) => return Ok(()), // the end
        };
        let mut sum = 0;
        for _ in 0..wanted & 0xff_ffff {
            sum += run((wanted >> 24) as u8, &database, &given).await?;
        }
        stream.write_u32(sum).await?;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let given = Document::from_reader(std::fs::File::open(&arguments[4])?)?;
    let database = Client::with_uri_str(&arguments[1]).await?.database("benchmark");
    let local = tokio::task::LocalSet::new();
    let callers: Vec<_> = (0..arguments[3].parse()?)
        .map(|_| local.spawn_local(call(arguments[2].clone(), database.clone(), given.clone())))
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
