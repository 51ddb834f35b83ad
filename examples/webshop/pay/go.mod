module thole.dev/examples/webshop/pay

go 1.23.0

require (
	github.com/nats-io/nats.go v1.45.0
	thole.dev/go v0.0.0
)

require (
	github.com/klauspost/compress v1.18.0 // indirect
	github.com/nats-io/nkeys v0.4.11 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	golang.org/x/crypto v0.37.0 // indirect
	golang.org/x/sys v0.32.0 // indirect
)

replace thole.dev/go => ../../../clients/go
