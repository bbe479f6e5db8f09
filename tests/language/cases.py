"""Good statements and the trees they stand for; shared by the tests of parser and printer."""

from __future__ import annotations

from fogline.language.ast import (
    And,
    Binary,
    Call,
    Comparison,
    Condition,
    EventWindow,
    Expression,
    Function,
    Insight,
    Membership,
    Metric,
    Negate,
    Not,
    Number,
    Options,
    Or,
    Parameter,
    Provider,
    Reference,
    SessionWindow,
    Statement,
    Stream,
    Text,
    TimeWindow,
)

MINUTE = TimeWindow(60_000)
A, B, X, Y, CITY = (Metric(name) for name in ("a", "b", "x", "y", "city"))


def call(function: str, *arguments: Expression, **rest: object) -> Call:
    return Call(function, arguments, **rest)  # type: ignore[arg-type]


def more(left: Expression | None, right: float) -> Comparison:
    return Comparison(">", left, Number(right))


SUM_A, SUM_B = call("SUM", A, window=MINUTE), call("SUM", B, window=MINUTE)

EXPRESSIONS: list[tuple[str, Expression]] = [
    ("a", A),
    ("1", Number(1.0)),
    ("1.5", Number(1.5)),
    (".5", Number(0.5)),
    ("1e3", Number(1000.0)),
    ("-a", Negate(A)),
    ("- -1", Negate(Negate(Number(1.0)))),
    ('"a b"', Metric("a b")),
    (r"'it\'s'", Metric("it's")),
    (r'"q\" \\ \n \t \u00e9"', Metric('q" \\ \n \t é')),
    ("a FROM (s1, s2)", Metric("a", ("s1", "s2"))),
    ('"a" from ("s1")', Metric("a", ("s1",))),
    ("INSIGHT busy", Reference("busy")),
    ('insight "every"', Reference("every")),
    ("insight", Metric("insight")),
    ("session + insight", Binary("+", Metric("session"), Metric("insight"))),
    ("F(session - a)", call("F", Binary("-", Metric("session"), A))),
    ("every", Metric("every")),
    ("m * s / h", Binary("/", Binary("*", Metric("m"), Metric("s")), Metric("h"))),
    ("k + r % sample", Binary("+", Metric("k"), Binary("%", Metric("r"), Metric("sample")))),
    ("scheduler - on - ms", Binary("-", Binary("-", Metric("scheduler"), Metric("on")),
                                   Metric("ms"))),
    ("a + b * 2", Binary("+", A, Binary("*", B, Number(2.0)))),
    ("(a + b) * 2", Binary("*", Binary("+", A, B), Number(2.0))),
    ("a - (b - x)", Binary("-", A, Binary("-", B, X))),
    ("a // rest\n + b /* c */ # d", Binary("+", A, B)),
    ("__class__", Metric("__class__")),
    ("größe", Metric("größe")),
    ("COUNT(count, 1 m)", call("COUNT", Metric("count"), window=MINUTE)),
    ("avg(a, 1 Minutes)", call("AVG", A, window=MINUTE)),
    ("SUM(a, 1 M, 2 s)", call("SUM", A, window=MINUTE, offset=TimeWindow(2000))),
    ("SUM(a, .25 SECONDS)", call("SUM", A, window=TimeWindow(250))),
    ("SUM(a, 1e3ms)", call("SUM", A, window=TimeWindow(1000))),
    ("SUM(a, 3650 DAYS)", call("SUM", A, window=TimeWindow(3650 * 86_400_000))),
    ("SUM(a, 5 EVENTS)", call("SUM", A, window=EventWindow(5))),
    ("SUM(a, SESSION 30 SECONDS)", call("SUM", A, window=SessionWindow(30_000))),
    ("SUM(session, SESSION 1 h)", call("SUM", Metric("session"),
                                       window=SessionWindow(3_600_000))),
    ("KALMAN[0.1, -2](a)", call("KALMAN", A, parameters=(0.1, -2.0))),
    ("F()", call("F")),
    ("CORRELATION(a, b, 1 m)", call("CORRELATION", A, B, window=MINUTE)),
    ("SUM(a WHEN b > 3, 1 m)", call("SUM", A, condition=more(B, 3.0), window=MINUTE)),
    ("TOP_K[10](SUM(a, 1 m) BY city)",
     call("TOP_K", call("SUM", A, window=MINUTE, keys=(CITY,)), parameters=(10.0,))),
    ("MAX(SUM(a, 1 m) BY city, x, 5 s)",
     call("MAX", call("SUM", A, window=MINUTE, keys=(CITY, X)), window=TimeWindow(5000))),
    ("MAX(SUM(a, 1 m) BY city, x WHEN > 1)",
     call("MAX", call("SUM", A, window=MINUTE, keys=(CITY, X)), condition=more(None, 1.0))),
    ("CORRELATION((SUM(a, 1 m) BY city), x)",
     call("CORRELATION", call("SUM", A, window=MINUTE, keys=(CITY,)), X)),
    ("CORRELATION(SUM(a, 1 m) BY city, SUM(b, 1 m) BY city)",
     call("CORRELATION", call("SUM", A, window=MINUTE, keys=(CITY,)),
          call("SUM", B, window=MINUTE, keys=(CITY,)))),
    ("SUM(a, 1 m) BY city / SUM(b, 1 m)",
     Binary("/", call("SUM", A, window=MINUTE, keys=(CITY,)), SUM_B)),
    ("SUM(a, 1 m) BY city, x / SUM(b, 1 m)",
     Binary("/", call("SUM", A, window=MINUTE, keys=(CITY, X)), SUM_B)),
    ("1 + (SUM(a, 1 m) BY city)",
     Binary("+", Number(1.0), call("SUM", A, window=MINUTE, keys=(CITY,)))),
]  # fmt: skip

CONDITIONS: list[tuple[str, Condition]] = [
    ("> 3", more(None, 3.0)),
    ("≥ 3", Comparison(">=", None, Number(3.0))),
    ("≤ 3", Comparison("<=", None, Number(3.0))),
    ("a > -3", Comparison(">", A, Negate(Number(3.0)))),
    ("a == open", Comparison("==", A, Metric("open"))),
    ('a == "open"', Comparison("==", A, Text("open"))),
    ('a == ("not bare")', Comparison("==", A, Metric("not bare"))),
    ('"a" != "b" FROM (s)', Comparison("!=", A, Metric("b", ("s",)))),
    ("a == every", Comparison("==", A, Metric("every"))),
    ("a IN (edge-1, 10.0.0.1, 'x y', -5, 1.5, on)",
     Membership(A, (Text("edge-1"), Text("10.0.0.1"), Text("x y"), Number(-5.0), Number(1.5),
                    Text("on")))),
    ("IN (a)", Membership(None, (Text("a"),))),
    ("> 3 AND < 9", And(more(None, 3.0), Comparison("<", None, Number(9.0)))),
    ("NOT > 3", Not(more(None, 3.0))),
    ('(> 3 OR == "x") AND b > 2',
     And(Or(more(None, 3.0), Comparison("==", None, Text("x"))), more(B, 2.0))),
    ("a + b IN (1)", Membership(Binary("+", A, B), (Number(1.0),))),
    ("a > 1 OR b > 2 AND x > 3", Or(more(A, 1.0), And(more(B, 2.0), more(X, 3.0)))),
    ("(a > 1 OR b > 2) AND x > 3", And(Or(more(A, 1.0), more(B, 2.0)), more(X, 3.0))),
    ("NOT a > 1 AND b > 2", And(Not(more(A, 1.0)), more(B, 2.0))),
    ("NOT (a > 1 AND b > 2)", Not(And(more(A, 1.0), more(B, 2.0)))),
    ("NOT NOT a > 1", Not(Not(more(A, 1.0)))),
    ("(a + b) > 3 AND (x > 1 OR NOT y < 2)",
     And(more(Binary("+", A, B), 3.0),
         Or(more(X, 1.0), Not(Comparison("<", Y, Number(2.0)))))),
    ("((a)) > 3", more(A, 3.0)),
    ("a > 1 AND k > 2", And(more(A, 1.0), more(Metric("k"), 2.0))),
    ("a > 1 AND sample5 > 2", And(more(A, 1.0), more(Metric("sample5"), 2.0))),
    ("a > 1 AND scheduler IN (x)", And(more(A, 1.0), Membership(Metric("scheduler"),
                                                                (Text("x"),)))),
    ("a > (AVG(b) BY city)", Comparison(">", A, call("AVG", B, keys=(CITY,)))),
]  # fmt: skip


def insight(expression: Expression = A, **rest: object) -> Insight:
    return Insight("i", expression, **rest)  # type: ignore[arg-type]


def provider(name: str, **parameters: str | float) -> Provider:
    return Provider(name, tuple(Parameter(key, value) for key, value in parameters.items()))


def options(**fields: object) -> Insight:
    return insight(options=Options(**fields))  # type: ignore[arg-type]


GEOHASH = call("GEOHASH", Metric("lat"), Metric("lon"), parameters=(5.0,))

STATEMENTS: list[tuple[str, Statement]] = [
    ("s = STREAM FROM mqtt()", Stream("s", provider("mqtt"))),
    ("s : stream from mqtt(topic='a/b', n=-5, format=json)",
     Stream("s", provider("mqtt", topic="a/b", n=-5.0, format="json"))),
    ("stream = STREAM FROM from(from=\"x\")", Stream("stream", provider("from", **{"from": "x"}))),
    ("function = STREAM FROM file()", Stream("function", provider("file"))),
    ('FUNCTION twice(a, every) = "my:twice"', Function("twice", ("a", "every"), "my:twice")),
    ("FUNCTION now() = 'my:now'", Function("now", (), "my:now")),
    ("i = COMPUTE a", insight()),
    ("i = COMPUTE SUM(a, 1 m) / SUM(b, 1 m) BY city",
     insight(Binary("/", SUM_A, SUM_B), keys=(CITY,))),
    ("i = COMPUTE -SUM(a, 1 m) BY city", insight(Negate(SUM_A), keys=(CITY,))),
    ("i = COMPUTE SUM(a, 1 m) BY x BY city",
     insight(call("SUM", A, window=MINUTE, keys=(X,)), keys=(CITY,))),
    ("i = COMPUTE (SUM(a, 1 m) BY x) BY city",
     insight(call("SUM", A, window=MINUTE, keys=(X,)), keys=(CITY,))),
    ("i = COMPUTE ((SUM(a, 1 m) BY city WHEN > 3))", insight(SUM_A, keys=(CITY,),
                                                            when=more(None, 3.0))),
    ("i = COMPUTE (a + b) BY city", insight(Binary("+", A, B), keys=(CITY,))),
    ("i = COMPUTE ((a + b) BY city) WHEN > 3",
     insight(Binary("+", A, B), keys=(CITY,), when=more(None, 3.0))),
    ("i = COMPUTE (a + b) * 2", insight(Binary("*", Binary("+", A, B), Number(2.0)))),
    ("i = COMPUTE AVG(a) WHEN > AVG(b) BY city",
     insight(call("AVG", A), keys=(CITY,), when=Comparison(">", None, call("AVG", B)))),
    ("i = COMPUTE AVG(a) BY x WHEN > AVG(b) BY city",
     insight(call("AVG", A), keys=(X,),
             when=Comparison(">", None, call("AVG", B, keys=(CITY,))))),
    ('i = COMPUTE SUM(a, 1 m) BY "city", GEOHASH[5](lat, lon), every EVERY 5 s',
     insight(SUM_A, keys=(CITY, GEOHASH, Metric("every")), every=TimeWindow(5000))),
    ("i = COMPUTE a TO mqtt(topic='t') WITH SALIENCE 1 EVERY 3 EVENTS WHEN > 3 BY city",
     insight(keys=(CITY,), when=more(None, 3.0), every=EventWindow(3),
             options=Options(salience=1), to=provider("mqtt", topic="t"))),
    ("i = COMPUTE a WITH SCHEDULER = perf-2_x AND SAMPLE 1", options(scheduler="perf-2_x",
                                                                    sample=1.0)),
    ("i = COMPUTE a WITH scheduler energy", options(scheduler="energy")),
    ("i = COMPUTE a WITH CONFIDENCE .95 AND AWARENESS ON accuracy AND MAX_ERROR 0.05",
     options(max_error=0.05, confidence=0.95, awareness="ACCURACY")),
    ("i = COMPUTE a WITH SIGNATURE 'me' AND ALGORITHM pmcod AND K=50 AND R = 0.5",
     options(signature="me", algorithm="pmcod", neighbours=50, radius=0.5)),
    ("i = COMPUTE a WITH ALLOW WHEN x > 1 AND k > 2 AND /* k > 3 */ K = 3 AND SAMPLE .5",
     options(allow=And(more(X, 1.0), more(Metric("k"), 2.0)), neighbours=3, sample=0.5)),
    ("i = COMPUTE a WITH ALLOW WHEN node_id IN (edge-1, edge-2) AND SCHEDULER perf",
     options(allow=Membership(Metric("node_id"), (Text("edge-1"), Text("edge-2"))),
             scheduler="perf")),
    ("i = COMPUTE a WITH ALLOW WHEN x > 1 AND # sample 0.2\n y > 1",
     options(allow=And(more(X, 1.0), more(Y, 1.0)))),
]  # fmt: skip
