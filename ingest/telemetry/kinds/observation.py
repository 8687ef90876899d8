from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="observation",
    help="observation of one component by another",
    fields=(
        TIME,
        Field("observer", "component", "observing component"),
        Field("subject", "component", "observed component"),
        Field("context", "name", "operation, such as a method or a kind of request"),
        Field(
            "status",
            "choice",
            "result; pending: not answered yet",
            choices=("healthy", "unhealthy", "pending"),
        ),
        Field("score", "amount", "confidence of the observer", optional=True, default=1.0),
    ),
)
