package bus_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"witan/bus"
)

// TestWatermillSuite runs Watermill's universal suite with guaranteed order. It
// leaves out by itself what asks for more than one process has: consumer groups,
// a service to restart, and messages that outlive the closed instance.
func TestWatermillSuite(t *testing.T) {
	tests.TestPubSub(t, tests.Features{
		ConsumerGroups:                      false,
		ExactlyOnceDelivery:                 true,
		GuaranteedOrder:                     true,
		GuaranteedOrderWithSingleSubscriber: true,
		Persistent:                          false,
		RestartServiceCommand:               nil,
		RequireSingleInstance:               true,
		NewSubscriberReceivesOldMessages:    false,
	}, func(t *testing.T) (message.Publisher, message.Subscriber) {
		b := bus.New(bus.Config{Buffer: 1024, Replay: true})
		return b, b
	}, nil)
}
