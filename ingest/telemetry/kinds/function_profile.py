from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="function_profile",
    help="behaviour of one function on one worker over a profile: share of the critical path, use of its resource",
    fields=(
        TIME,
        Field("job", "name", "training job"),
        Field("worker", "component", "worker that was profiled, such as worker/17"),
        Field("role", "name", "role of the worker; only workers of one role are compared, such as pp0"),
        Field("function", "name", "function, kernel, memory operation or collective"),
        Field(
            "cls",
            "choice",
            "class of the function; its resource is the SM, the memory bus, the network or the CPU",
            choices=("compute", "memory", "collective", "python"),
        ),
        Field("beta", "amount", "share of the profile that the function is on the critical path", high=1.0),
        Field("mu", "amount", "mean use of the resource while the function runs"),
        Field("sigma", "amount", "standard deviation of that use"),
        Field(
            "window_s",
            "amount",
            "length of the profile; 0: not known",
            unit="seconds",
            optional=True,
            default=0.0,
        ),
    ),
)
