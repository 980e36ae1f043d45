package proc

// Memory is what a tree uses, in bytes. RSS counts shared pages for every
// process that maps them; PSS shares them out, and is 0 where the system does not say.
type Memory struct {
	RSS, PSS  int64
	Processes int
}
