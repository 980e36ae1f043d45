package model

import "fmt"

// Items are the rows of a block, made when they are first asked for.
func (b *Block) Items() []Item {
	b.once.Do(func() {
		it := items{run: b.Run}
		it.fill(b.Messages)
		b.items = it.out
	})
	return b.items
}

type items struct {
	run   *Run
	out   []Item
	shown map[string]bool // attempts and gates that have a row
}

// fill orders what happened: the person's message, then phase by phase the turns
// of the agents, each followed by its gates, then what the run came to.
func (it *items) fill(messages []*Message) {
	it.shown = map[string]bool{}
	said := map[string]bool{}
	for _, m := range messages {
		if m.Role == "user" {
			it.add(Item{Kind: ItemUser, Key: m.ID, Message: m})
		}
	}
	if it.run != nil {
		for i := range it.run.Phases {
			it.phase(&it.run.Phases[i])
		}
		for _, a := range it.run.Attempts {
			it.attempt(a)
		}
		for _, a := range it.run.Attempts {
			if a.Message != nil {
				said[a.Message.ID] = true
			}
		}
	}
	for _, m := range messages {
		if m.Role == "user" || said[m.ID] || it.shown[m.Attempt] {
			continue
		}
		kind := ItemAgent
		if m.Role == "system" {
			kind = ItemSystem
		}
		it.add(Item{Kind: kind, Key: m.ID, Message: m})
	}
	it.end()
}

func (it *items) add(i Item) {
	i.Run = it.run
	it.out = append(it.out, i)
}

// phase adds a rule and the turns of a phase in the order of its slots.
func (it *items) phase(p *Phase) {
	if p.Name != "respond" && p.Name != "" {
		it.add(Item{Kind: ItemRule, Key: fmt.Sprintf("%s/%s/%d", it.run.ID, p.Name, p.Round), Phase: p})
	}
	for _, agent := range p.Agents {
		for _, a := range it.run.Attempts {
			if a.Agent == agent && a.Phase == p.Name && a.Round == p.Round {
				it.attempt(a)
			}
		}
	}
	for _, a := range it.run.Attempts { // of a slot that was named later
		if a.Phase == p.Name && a.Round == p.Round {
			it.attempt(a)
		}
	}
}

func (it *items) attempt(a *Attempt) {
	if it.shown[a.ID] {
		return
	}
	it.shown[a.ID] = true
	it.add(Item{Kind: ItemAgent, Key: a.ID, Attempt: a, Message: a.Message})
	for i := range it.run.Gates {
		if it.run.Gates[i].Attempt == a.ID {
			it.gate(&it.run.Gates[i])
		}
	}
}

func (it *items) gate(g *Gate) {
	if !it.shown[g.ID] {
		it.shown[g.ID] = true
		it.add(Item{Kind: ItemGate, Key: g.ID, Gate: g})
	}
}

// end adds the run's own gates and notices, and how it ended unless all is well.
func (it *items) end() {
	r := it.run
	if r == nil {
		return
	}
	for i := range r.Gates {
		it.gate(&r.Gates[i])
	}
	for i := range r.Notices {
		if r.Notices[i].Attempt == "" {
			it.add(Item{Kind: ItemSystem, Key: fmt.Sprintf("%s/notice/%d", r.ID, i), Notice: &r.Notices[i]})
		}
	}
	if !r.Active() && (r.Status != "completed" || r.Commit != nil) {
		it.add(Item{Kind: ItemEnd, Key: r.ID + "/end"})
	}
}
