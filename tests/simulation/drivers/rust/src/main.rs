// This client uses the driver of Rust. test_other_drivers.py describes the input of the client.
use mongodb::bson::{doc, Bson, Document};
use mongodb::{options::ClientOptions, Client, Cursor};
use std::io::BufRead;
use std::time::Duration;

type Failure = Box<dyn std::error::Error>;

async fn all(mut cursor: Cursor<Document>) -> Result<Vec<Document>, Failure> {
    let mut found = Vec::new();
    while cursor.advance().await? {
        found.push(cursor.deserialize_current()?);
    }
    Ok(found)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let mut options = ClientOptions::parse(&arguments[1]).await?;
    options.server_selection_timeout = Some(Duration::from_secs(10));
    let client = Client::with_options(options)?;
    let orders = client.database("shop").collection::<Document>("orders");

    orders.insert_many((0..250).map(|number| doc! {"_id": number, "even": number % 2 == 0})).await?;
    assert_eq!(all(orders.find(doc! {"even": true}).batch_size(20).await?).await?.len(), 125);
    let changed = orders.update_many(doc! {"even": true}, doc! {"$set": {"half": 1}}).await?;
    assert_eq!(changed.modified_count, 125);
    let counted = all(orders.aggregate([doc! {"$match": {"half": 1}}, doc! {"$count": "n"}]).await?).await?;
    assert_eq!(counted, [doc! {"n": 125}]);
    if arguments[2] != "standalone" {
        let mut session = client.start_session().await?;
        session.start_transaction().await?;
        orders.insert_one(doc! {"_id": "moved"}).session(&mut session).await?;
        session.commit_transaction().await?;
        assert!(orders.find_one(doc! {"_id": "moved"}).await?.is_some());
    }
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let said = match line.split_once(' ') {
            None => orders.find_one(doc! {"_id": 2}).await?.and_then(|found| found.get("half").cloned()),
            Some((_, id)) => Some(orders.insert_one(doc! {"_id": id}).await?.inserted_id),
        };
        match said {
            Some(Bson::String(id)) => println!("{id}"),
            Some(half) => println!("{half}"),
            None => println!("nothing"),
        }
    }
    client.shutdown().await;
    Ok(())
}
