from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="benchmark",
    help="what a benchmark measured on a node",
    fields=(
        TIME,
        Field("node", "component", "where it ran, such as node/gpu-17"),
        Field("benchmark", "name", "which benchmark, such as gemm-flops"),
        Field("metric", "name", "what it measured, such as fp16"),
        Field("values", "numbers", "the values measured, one a repetition, rank or step", signed=True),
        Field("sku", "text", "which model of node; only equals are compared", optional=True, default=""),
    ),
)
