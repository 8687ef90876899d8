from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="observation",
    help="what one component saw of another",
    fields=(
        TIME,
        Field("observer", "component", "who saw it"),
        Field("subject", "component", "of whom"),
        Field("context", "name", "in which operation, such as a method or a kind of request"),
        Field(
            "status",
            "choice",
            "how it went; pending: asked and not answered yet",
            choices=("healthy", "unhealthy", "pending"),
        ),
        Field("score", "amount", "how sure the observer is", optional=True, default=1.0),
    ),
)
