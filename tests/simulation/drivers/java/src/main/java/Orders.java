// This client uses the driver of Java. test_other_drivers.py describes the input of the client.
import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.bson.Document;

public class Orders {
    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    public static void main(String[] arguments) throws Exception {
        MongoClientSettings settings = MongoClientSettings.builder()
                .applyConnectionString(new ConnectionString(arguments[0]))
                .applyToClusterSettings(cluster -> cluster.serverSelectionTimeout(10, TimeUnit.SECONDS))
                .build();
        try (MongoClient client = MongoClients.create(settings)) {
            MongoCollection<Document> orders = client.getDatabase("shop").getCollection("orders");
            Document even = new Document("even", true);
            orders.insertMany(IntStream.range(0, 250)
                    .mapToObj(number -> new Document("_id", number).append("even", number % 2 == 0)).toList());
            check(orders.find(even).batchSize(20).into(new ArrayList<>()).size() == 125, "find");
            Document half = new Document("half", 1);
            check(orders.updateMany(even, new Document("$set", half)).getModifiedCount() == 125, "update");
            List<Document> counted = orders
                    .aggregate(List.of(new Document("$match", half), new Document("$count", "n")))
                    .into(new ArrayList<>());
            check(counted.equals(List.of(new Document("n", 125))), "aggregate");
            if (!arguments[1].equals("standalone")) {
                try (ClientSession session = client.startSession()) {
                    session.withTransaction(() -> orders.insertOne(session, new Document("_id", "moved")));
                }
                check(orders.find(new Document("_id", "moved")).first() != null, "transaction");
            }
            System.out.println("ready");
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                if (words[0].equals("read")) {
                    System.out.println(orders.find(new Document("_id", 2)).first().getInteger("half"));
                } else {
                    System.out.println(orders.insertOne(new Document("_id", words[1])).getInsertedId().asString().getValue());
                }
            }
        }
    }
}
