import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.ServerVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** mongo-java-server in memory, on the port of the command line. */
public class Main {
    public static void main(String[] arguments) {
        MemoryBackend backend = new MemoryBackend();
        backend.version(new Version());
        new MongoServer(backend).bind("127.0.0.1", Integer.parseInt(arguments[0]));
    }

    /** Version 5.0 of the library has the wire version of 4.2, which PyMongo does not support. */
    private static class Version implements MongoVersion {
        public List<Integer> getVersionArray() {
            return ServerVersion.MONGO_5_0.getVersionArray();
        }

        public int getWireVersion() {
            return 13;
        }
    }
}
