package markdown

import "strings"

// language is what has to be known of a language to colour it: how comments and
// strings look, and its words. It is no grammar.
type language struct {
	line     []string    // what begins a comment up to the end of the line
	block    [2]string   // what begins and ends a comment over lines
	quotes   string      // characters that begin and end a string on one line
	long     [][2]string // what begins and ends a string over lines
	keywords map[string]bool
	types    map[string]bool
	fold     bool // words in any case
	keys     bool // a word or string before a colon or equals sign is a name
	tags     bool // a language of tags
}

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// c is what the languages that look like C share.
func c(keywords, types string) language {
	return language{line: []string{"//"}, block: [2]string{"/*", "*/"}, quotes: `"'`, keywords: words(keywords), types: words(types)}
}

const (
	wordsC    = "auto break case const continue default do else enum extern for goto if inline register return sizeof static struct switch typedef union volatile while "
	wordsCpp  = wordsC + "catch class constexpr delete explicit export final friend mutable namespace new noexcept operator override private protected public template this throw try typename using virtual "
	typesC    = "bool char double float int long short signed size_t uint8_t uint16_t uint32_t uint64_t int8_t int16_t int32_t int64_t unsigned void "
	wordsJava = "abstract assert break case catch class const continue default do else enum extends final finally for goto if implements import instanceof interface native new package private protected public record return sealed static super switch synchronized this throw throws transient try var volatile while yield true false null "
	wordsJS   = "async await break case catch class const continue debugger default delete do else export extends finally for from function get if import in instanceof let new of return set static super switch this throw try typeof var void while with yield true false null undefined "
	wordsTS   = wordsJS + "abstract as declare enum implements interface keyof namespace private protected public readonly satisfies type "
)

// languageOf finds a language by its name or by the ending of its files.
func languageOf(name string) (language, bool) {
	name = strings.ToLower(name)
	if full, ok := aliases[name]; ok {
		name = full
	}
	make, ok := languages[name]
	if !ok {
		return language{}, false
	}
	return make(), true
}

var aliases = map[string]string{"golang": "go", "py": "python", "python3": "python", "js": "javascript", "jsx": "javascript", "mjs": "javascript", "ts": "typescript",
	"tsx": "typescript", "rs": "rust", "rb": "ruby", "sh": "bash", "shell": "bash", "zsh": "bash", "console": "bash", "yml": "yaml", "h": "c", "cc": "cpp", "c++": "cpp", "hpp": "cpp",
	"cxx": "cpp", "c#": "csharp", "cs": "csharp", "kt": "kotlin", "htm": "html", "xml": "html", "svg": "html", "vue": "html", "scss": "css", "makefile": "make", "mk": "make",
	"docker": "dockerfile", "jsonc": "json", "ndjson": "json", "ini": "toml", "conf": "toml", "psql": "sql", "sqlite": "sql"}

// languages are made when they are asked for: most processes never colour anything.
var languages = map[string]func() language{
	"go": func() language {
		l := c("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var true false nil iota",
			"any bool byte comparable complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr")
		l.long = [][2]string{{"`", "`"}}
		return l
	},
	"python": func() language {
		return language{line: []string{"#"}, quotes: `"'`, long: [][2]string{{`"""`, `"""`}, {"'''", "'''"}},
			keywords: words("and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield True False None self"),
			types:    words("bool bytes dict float int list object set str tuple")}
	},
	"javascript": func() language {
		l := c(wordsJS, "")
		l.long = [][2]string{{"`", "`"}}
		return l
	},
	"typescript": func() language {
		l := c(wordsTS, "any bigint boolean never number object string symbol unknown")
		l.long = [][2]string{{"`", "`"}}
		return l
	},
	"c":    func() language { return c(wordsC, typesC) },
	"cpp":  func() language { return c(wordsCpp+"true false nullptr ", typesC+"string") },
	"java": func() language { return c(wordsJava, "boolean byte char double float int long short void String") },
	"csharp": func() language {
		return c(wordsJava+"async await base foreach get in internal is namespace out override params readonly ref set using virtual where ", typesC+"string object decimal")
	},
	"kotlin": func() language {
		return c("abstract as break by catch class companion const constructor continue data do else enum finally for fun if import in init interface internal is lateinit null object open override package private protected public return sealed super suspend this throw true false try typealias val var when while", "Any Boolean Byte Char Double Float Int Long Short String Unit")
	},
	"swift": func() language {
		return c("as associatedtype async await break case catch class continue default defer do else enum extension fileprivate for func guard if import in init inout internal is let nil open operator override private protocol public repeat return self static struct subscript super switch throw throws true false try typealias var where while", "Any Bool Character Double Float Int String Void")
	},
	"rust": func() language {
		l := c("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while", "bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize String Vec Option Result")
		l.quotes = `"` // a single quote is mostly a lifetime
		return l
	},
	"php": func() language {
		l := c(wordsJava+"array as echo elseif endif foreach fn function global isset list match namespace print require require_once trait unset use ", "bool int float string void mixed")
		l.line = []string{"//", "#"}
		return l
	},
	"ruby": func() language {
		return language{line: []string{"#"}, quotes: `"'`, keywords: words("alias and begin break case class def defined? do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true undef unless until when while yield")}
	},
	"lua": func() language {
		return language{line: []string{"--"}, block: [2]string{"--[[", "]]"}, quotes: `"'`, keywords: words("and break do else elseif end false for function goto if in local nil not or repeat return then true until while")}
	},
	"bash": func() language {
		return language{line: []string{"#"}, long: [][2]string{{`"`, `"`}, {"'", "'"}}, keywords: words("case do done elif else esac exit export fi for function if in local readonly return select set shift source then trap unset until while")}
	},
	"sql": func() language {
		return language{line: []string{"--"}, block: [2]string{"/*", "*/"}, quotes: `'`, fold: true,
			keywords: words("add all alter and as asc begin between by case check column commit constraint create cross default delete desc distinct drop else end exists foreign from full group having if in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then transaction trigger union unique update using values view when where with"),
			types:    words("bigint blob boolean char date decimal float int integer json numeric real serial text timestamp uuid varchar")}
	},
	"json": func() language { return language{quotes: `"`, keys: true, keywords: words("true false null")} },
	"yaml": func() language {
		return language{line: []string{"#"}, quotes: `"'`, keys: true, keywords: words("true false null yes no on off")}
	},
	"toml": func() language {
		return language{line: []string{"#", ";"}, quotes: `"'`, long: [][2]string{{`"""`, `"""`}, {"'''", "'''"}}, keys: true, keywords: words("true false")}
	},
	"css": func() language {
		return language{block: [2]string{"/*", "*/"}, quotes: `"'`, keys: true, keywords: words("important media import supports keyframes root")}
	},
	"html": func() language {
		return language{block: [2]string{"<!--", "-->"}, quotes: `"`, tags: true}
	},
	"make": func() language {
		return language{line: []string{"#"}, keys: true, keywords: words("define else endef endif export ifdef ifeq ifndef ifneq include override unexport")}
	},
	"dockerfile": func() language {
		return language{line: []string{"#"}, quotes: `"'`, fold: true, keywords: words("add arg as cmd copy entrypoint env expose from healthcheck label run shell user volume workdir")}
	},
}
