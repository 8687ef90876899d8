from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="benchmark",
    help="result of a benchmark on a node",
    fields=(
        TIME,
        Field("node", "component", "node under test, such as node/gpu-17"),
        Field("benchmark", "name", "name of the benchmark, such as gemm-flops"),
        Field("metric", "name", "name of the measured quantity, such as fp16"),
        Field("values", "numbers", "measured values, one per repetition, rank or step", signed=True),
        Field("sku", "text", "model of the node; only equal models are compared", optional=True, default=""),
    ),
)
