from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="node_incident",
    help="a node had an incident",
    fields=(
        TIME,
        Field("node", "component", "which node, such as node/gpu-17"),
        Field("kind", "name", "what kind of incident, such as gpu_ecc"),
        Field("covariates", "measures", "what may have to do with it, by name", optional=True, default="{}"),
    ),
)
