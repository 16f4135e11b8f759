package dbt_arctic;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Collections;
import java.util.Iterator;
import java.util.Properties;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.logging.Logger;
import java.util.regex.Pattern;

/**
 * The driver of `jdbc:arctic:postgresql://..`: that of `jdbc:postgresql://..`, except that a write without an
 * answer is not sent again.
 *
 * Iceberg's JDBC catalog sends each statement that lost its connection again. A commit is an UPDATE that
 * compares the old location of the metadata. If it had succeeded, its repetition finds another location, and
 * Iceberg takes the commit for one that failed: it prepares it again. Then it either sets the branch back to
 * its own snapshot, which removes later commits of others, or it finds a conflict with itself and deletes the
 * files of the commit that succeeded.
 *
 * So the driver looks whether the table has the new location, now or before its last commit. If it has, the
 * commit succeeded. If not, more commits may have followed, or the database may still execute it. Then the
 * error gets a state that Iceberg does not repeat, and the outcome is unknown. Reads are repeated as before.
 */
public final class CatalogDriver implements Driver {
  private static final String PREFIX = "jdbc:arctic:";
  /** The message that `engine/faults.py` knows. */
  private static final String NO_ANSWER = "No answer to a write to the catalog's database: ";
  private static final String NO_ANSWER_STATE = "AR203";
  private static final String NOT_CONNECTED_STATE = "08003";
  private static final long IDLE_NANOS = 1_000_000_000L;
  private static final int VALID_TIMEOUT_S = 10;
  /** Iceberg's commit. Its parameters are the new location, the old one, and the three parts of the name. */
  private static final Pattern COMMIT =
      Pattern.compile(
          "UPDATE iceberg_tables SET metadata_location = \\?\\s*, previous_metadata_location = \\?"
              + " WHERE catalog_name = \\? AND table_namespace = \\? AND table_name = \\? AND .*");

  private static final String IS_COMMITTED =
      "SELECT 1 FROM iceberg_tables WHERE ? IN (metadata_location, previous_metadata_location)"
          + " AND catalog_name = ? AND table_namespace = ? AND table_name = ?";

  private static final int PARAMETERS = 5;
  private static final Set<String> WRITES =
      Set.of("executeUpdate", "executeLargeUpdate", "executeBatch", "executeLargeBatch");

  static {
    try {
      DriverManager.registerDriver(new CatalogDriver());
    } catch (SQLException error) {
      throw new ExceptionInInitializerError(error);
    }
  }

  @Override
  public boolean acceptsURL(String url) {
    return url != null && url.startsWith(PREFIX);
  }

  @Override
  public Connection connect(String url, Properties info) throws SQLException {
    if (!acceptsURL(url)) {
      return null;
    }
    String inner = "jdbc:" + url.substring(PREFIX.length());
    Driver driver = driverOf(inner);
    Connector connector = () -> driver.connect(inner, info);
    return (Connection) wrapped(Connection.class, new OfConnection(connector));
  }

  /** Opens another connection to the same database. */
  private interface Connector {
    Connection connect() throws SQLException;
  }

  /** Spark's class loader of jars may have loaded the driver, and DriverManager hides it from here. */
  private static Driver driverOf(String url) throws SQLException {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    Iterator<Driver> found = ServiceLoader.load(Driver.class, loader).iterator();
    while (true) {
      try {
        if (!found.hasNext()) {
          break;
        }
        Driver driver = found.next();
        if (!(driver instanceof CatalogDriver) && driver.acceptsURL(url)) {
          return driver;
        }
      } catch (ServiceConfigurationError error) {
        continue; // another driver that cannot be loaded
      }
    }
    for (Driver driver : Collections.list(DriverManager.getDrivers())) {
      if (!(driver instanceof CatalogDriver) && driver.acceptsURL(url)) {
        return driver;
      }
    }
    throw new SQLException("No suitable driver for " + url.split("[?;]")[0], "08001");
  }

  private static Object wrapped(Class<?> kind, InvocationHandler handler) {
    return Proxy.newProxyInstance(CatalogDriver.class.getClassLoader(), new Class<?>[] {kind}, handler);
  }

  private static Object call(Object target, Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(target, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }

  private static final class OfConnection implements InvocationHandler {
    private final Connector connector;
    private final Connection opened;
    private volatile long usedAt = System.nanoTime();

    OfConnection(Connector connector) throws SQLException {
      this.connector = connector;
      this.opened = connector.connect();
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
      Object result = call(opened, method, arguments);
      if (!(result instanceof Statement)) {
        return result;
      }
      Class<?> kind =
          result instanceof CallableStatement
              ? CallableStatement.class
              : result instanceof PreparedStatement ? PreparedStatement.class : Statement.class;
      String sql = arguments != null && arguments[0] instanceof String ? (String) arguments[0] : "";
      return wrapped(kind, new OfStatement(this, (Statement) result, sql));
    }

    /** A server that was restarted has closed idle connections. Nothing was sent yet, so Iceberg may retry. */
    void requireAlive() throws SQLException {
      if (System.nanoTime() - usedAt > IDLE_NANOS && !opened.isValid(VALID_TIMEOUT_S)) {
        throw new SQLException("The connection was closed while it was idle.", NOT_CONNECTED_STATE);
      }
    }
  }

  private static final class OfStatement implements InvocationHandler {
    private final OfConnection connection;
    private final Statement statement;
    private final String sql;
    private final String[] parameters = new String[PARAMETERS];

    OfStatement(OfConnection connection, Statement statement, String sql) {
      this.connection = connection;
      this.statement = statement;
      this.sql = sql;
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
      boolean writes = WRITES.contains(method.getName());
      if (writes) {
        connection.requireAlive();
      }
      if (method.getName().equals("setString") && (Integer) arguments[0] <= PARAMETERS) {
        parameters[(Integer) arguments[0] - 1] = (String) arguments[1];
      }
      try {
        Object result = call(statement, method, arguments);
        connection.usedAt = System.nanoTime();
        return result;
      } catch (SQLException error) {
        String state = error.getSQLState();
        if (writes && state != null && state.startsWith("08")) {
          if (method.getName().equals("executeUpdate") && succeeded()) {
            return 1;
          }
          throw new SQLException(NO_ANSWER + error.getMessage(), NO_ANSWER_STATE, error);
        }
        throw error;
      }
    }

    /** Whether the statement was a commit, and its new location is the current one or the one before. */
    private boolean succeeded() {
      if (!COMMIT.matcher(sql).matches()) {
        return false;
      }
      try (Connection other = connection.connector.connect();
          PreparedStatement query = other.prepareStatement(IS_COMMITTED)) {
        query.setString(1, parameters[0]);
        for (int number = 3; number <= PARAMETERS; number++) {
          query.setString(number - 1, parameters[number - 1]);
        }
        try (ResultSet found = query.executeQuery()) {
          return found.next();
        }
      } catch (SQLException error) {
        return false; // unknown
      }
    }
  }

  @Override
  public DriverPropertyInfo[] getPropertyInfo(String url, Properties info) {
    return new DriverPropertyInfo[0];
  }

  @Override
  public int getMajorVersion() {
    return 1;
  }

  @Override
  public int getMinorVersion() {
    return 0;
  }

  @Override
  public boolean jdbcCompliant() {
    return false;
  }

  @Override
  public Logger getParentLogger() {
    return Logger.getLogger("dbt_arctic");
  }
}
