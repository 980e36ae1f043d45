package bus

import "sync/atomic"

// Metrics of one bus since it was made. Published and Refused count calls of
// Publish; the others count per subscription.
type Metrics struct {
	Published   int64 `json:"published"`
	Delivered   int64 `json:"delivered"`
	Undelivered int64 `json:"undelivered"` // waiting or being handled now; after Close, what it left
	Refused     int64 `json:"refused"`     // Publish returned an error
	Overflow    int64 `json:"overflow"`    // dropped for want of room; view only
}

type counters struct {
	published, delivered, refused, overflow atomic.Int64
}

func (c *counters) snapshot(undelivered int) Metrics {
	return Metrics{
		Published: c.published.Load(), Delivered: c.delivered.Load(), Undelivered: int64(undelivered),
		Refused: c.refused.Load(), Overflow: c.overflow.Load(),
	}
}
