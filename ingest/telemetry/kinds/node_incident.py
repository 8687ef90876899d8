from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="node_incident",
    help="incident of a node",
    fields=(
        TIME,
        Field("node", "component", "node, such as node/gpu-17"),
        Field("kind", "name", "kind of incident, such as gpu_ecc"),
        Field("covariates", "measures", "related measurements by name", optional=True, default="{}"),
    ),
)
