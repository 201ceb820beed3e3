"""Books a day of model calls into an SQLite database on disk and bills the tenants."""

import csv
import io
import json
import random
import sqlite3

PRICES = {"small": (0.25, 1.25), "medium": (3.0, 15.0), "large": (15.0, 75.0)}  # dollars a million tokens


def calls(count):
    """Calls as a gateway would log them: one JSON object a line."""
    chance = random.Random(7)
    for number in range(count):
        yield json.dumps({
            "id": f"call-{number:05}",
            "tenant": chance.choice(["acme", "globex", "initech", "umbrella"]),
            "model": chance.choices(list(PRICES), weights=[6, 3, 1])[0],
            "usage": {"input": chance.randrange(200, 20_000), "output": chance.randrange(20, 2_000)},
        })


def book(database, lines):
    """Stores the calls and what each cost."""
    database.execute("CREATE TABLE call (id TEXT PRIMARY KEY, tenant TEXT, model TEXT, tokens INT, dollars REAL)")
    rows = []
    for line in lines:
        call = json.loads(line)
        read, written = call["usage"]["input"], call["usage"]["output"]
        price_read, price_written = PRICES[call["model"]]
        dollars = (read * price_read + written * price_written) / 1e6
        rows.append((call["id"], call["tenant"], call["model"], read + written, dollars))
    with database:
        database.executemany("INSERT INTO call VALUES (?, ?, ?, ?, ?)", rows)


def bill(database):
    """The bill as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["tenant", "calls", "tokens", "dollars"])
    for tenant, count, tokens, dollars in database.execute(
        "SELECT tenant, count(*), sum(tokens), sum(dollars) FROM call GROUP BY tenant ORDER BY tenant"
    ):
        writer.writerow([tenant, count, tokens, f"{dollars:.2f}"])
    return text.getvalue()


connection = sqlite3.connect("/tmp/ledger.db")
book(connection, calls(5_000))
print(bill(connection), end="")
print("database:", connection.execute("PRAGMA integrity_check").fetchone()[0])
