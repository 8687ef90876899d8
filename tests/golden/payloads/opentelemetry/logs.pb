
Ú
§
"
telemetry.sdk.language
python
%
telemetry.sdk.name
opentelemetry
!
telemetry.sdk.version
1.45.2

service.instance.id
cart-1

service.name
cart.
	
shop.db!*
no space on disk 7Yð2Lðê