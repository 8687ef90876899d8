from ingest.telemetry.kinds.declare import TIME, AtMost, Field, Kind

KIND = Kind(
    name="collective",
    help="state of one rank in one collective operation; a rank that never launched the operation has no row",
    fields=(
        TIME,
        Field("job", "name", "training job"),
        Field("communicator", "name", "communicator (process group) of the operation"),
        Field("seq", "count", "sequence number of the operation in its communicator"),
        Field("op", "name", "operation, such as all_reduce or send"),
        Field("rank", "count", "global rank of the process"),
        Field(
            "src",
            "count",
            "rank that sends, for one transfer between two ranks; -1: not such a transfer",
            optional=True,
            default=-1,
            low=-1,
        ),
        Field(
            "dst", "count", "rank that receives; -1: not such a transfer", optional=True, default=-1, low=-1
        ),
        Field(
            "bytes", "amount", "size of the message; 0: not known", unit="bytes", optional=True, default=0.0
        ),
        Field(
            "start_ns",
            "amount",
            "start of the execution since 1970, exact to 256 ns; 0: not known",
            unit="nanoseconds",
            optional=True,
            default=0.0,
        ),
        Field(
            "end_ns",
            "amount",
            "end of the execution since 1970, exact to 256 ns; 0: not known",
            unit="nanoseconds",
            optional=True,
            default=0.0,
        ),
        Field("state", "choice", "state of the rank", choices=("scheduled", "started", "completed")),
        Field(
            "ranks", "count", "number of ranks in the communicator; 0: not known", optional=True, default=0
        ),
        Field("node", "text", "node of the rank, such as node/gpu-17", optional=True, default=""),
    ),
    checks=(AtMost("start_ns", "end_ns", where_given=True),),
)
