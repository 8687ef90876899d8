from ingest.telemetry.kinds.declare import TIME, Field, Kind

KIND = Kind(
    name="nic_traffic",
    help="bytes that a network card of a training job sent and received since the row before",
    fields=(
        TIME,
        Field("job", "name", "training job that the card serves"),
        Field("host", "component", "host of the card, such as host/h17"),
        Field("nic", "component", "the card, such as nic/h17-0"),
        Field("rail", "count", "index of the card in its host"),
        Field("tx_bytes", "amount", "bytes sent", unit="bytes"),
        Field("rx_bytes", "amount", "bytes received", unit="bytes", optional=True, default=0.0),
    ),
)
