//! Checks before a run whether the programs of the user's commands are installed, and which packages have the missing ones.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A program that a command needs and that is not installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Name of the program in the command.
    pub program: String,
    /// Debian package that has the program; `None`: unknown.
    pub package: Option<&'static str>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Missing { program, package } = self;
        if program.contains('/') {
            return write!(f, "there is no program {program}");
        }
        write!(f, "{program} is not on the PATH")?;
        match package {
            Some(package) => write!(f, ": install the package {package} (Debian, Ubuntu)"),
            None => Ok(()),
        }
    }
}

/// The program of a command, if it is not installed; `None`: it is installed. `path` is the command's PATH.
pub fn missing_of_words(program: &str, path: &OsStr) -> Option<Missing> {
    (!is_there(program, path)).then(|| missing(program))
}

/// The first program in a shell line that is not installed, as far as this can be determined without a shell: words
/// that the shell would expand are ignored.
pub fn missing_of_line(line: &str, path: &OsStr) -> Option<Missing> {
    programs(line)
        .into_iter()
        .find(|program| !is_there(program, path))
        .map(|program| missing(&program))
}

fn missing(program: &str) -> Missing {
    let known = PACKAGES.iter().find(|(name, _)| *name == program);
    Missing {
        program: program.to_owned(),
        package: known.map(|(_, package)| *package),
    }
}

fn is_there(program: &str, path: &OsStr) -> bool {
    let is_program = |path: &Path| {
        let found = fs::metadata(path);
        found.is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_program(Path::new(program));
    }
    std::env::split_paths(path).any(|folder| is_program(&folder.join(program)))
}

/// Words of a shell line that are certainly names of programs.
fn programs(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_plain = is_plain(line);
    for (index, words) in simple_commands(line).into_iter().enumerate() {
        if index > 0 && !is_plain {
            break;
        }
        // The words after `a=$(` belong to another shell.
        let mut assignments = words.iter().take_while(|word| is_assignment(word));
        if assignments.any(|word| word.contains(['(', '`'])) {
            continue;
        }
        let mut words = words.into_iter().skip_while(|word| is_assignment(word));
        let first = match words.next() {
            // `exec nginx`; `exec` with only a redirection runs no program.
            Some(word) if word == "exec" => words.find(|word| !is_assignment(word)),
            word => word,
        };
        if let Some(word) = first
            && is_name(&word)
            && !WORDS.contains(&word.as_str())
            // `f () {`
            && !words.next().is_some_and(|next| next.starts_with('('))
        {
            found.push(word);
        }
    }
    found
}

/// Whether a shell line has no function, here-document, alias or substitution, which may define or hide the commands
/// after it. A subshell does not: its `(` begins a word.
fn is_plain(line: &str) -> bool {
    let mut parentheses = line.match_indices('(').map(|(at, _)| line.split_at(at));
    let hides = parentheses.any(|(before, from)| {
        let begins_word = before.is_empty() || before.ends_with([' ', '\t', '\n', ';', '&', '|']);
        !begins_word || from[1..].trim_start().starts_with(')')
    });
    !hides && !["<<", "`", "alias "].iter().any(|sign| line.contains(sign))
}

/// Splits a shell line into commands and their words; quoted or escaped text is no word of its own.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    let mut characters = line.chars();
    let end_word = |word: &mut String, commands: &mut Vec<Vec<String>>| {
        if !word.is_empty()
            && let Some(command) = commands.last_mut()
        {
            command.push(std::mem::take(word));
        }
    };
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) => {
                if c == open {
                    quote = None;
                } else if c == '\\' && open == '"' {
                    characters.next();
                }
                word.push('"');
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                word.push('"');
            }
            (None, '\\') => {
                // A continued line.
                if characters.next() != Some('\n') {
                    word.push('"');
                }
            }
            (None, '#') if word.is_empty() => {
                let _ = characters.by_ref().find(|c| *c == '\n');
                commands.push(Vec::new());
            }
            (None, ';' | '&' | '|' | '\n') => {
                // `2>&1` and `>|` end nothing.
                if word.ends_with(['>', '<']) {
                    word.push('"');
                    continue;
                }
                end_word(&mut word, &mut commands);
                commands.push(Vec::new());
            }
            (None, c) if c.is_whitespace() => end_word(&mut word, &mut commands),
            (None, c) => word.push(c),
        }
    }
    end_word(&mut word, &mut commands);
    commands.retain(|words| !words.is_empty());
    commands
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn is_name(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._/+-".contains(c);
    word.chars().all(is_part) && word.chars().any(|c| c.is_ascii_alphanumeric())
}

/// Reserved words and builtins of the shell, which are no installed programs.
const WORDS: &[&str] = &[
    "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "echo", "elif",
    "else", "esac", "eval", "exec", "exit", "export", "false", "fg", "fi", "for", "function",
    "getopts", "hash", "if", "in", "jobs", "kill", "local", "printf", "pwd", "read", "readonly",
    "return", "select", "set", "shift", "source", "test", "then", "time", "times", "trap", "true",
    "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
];

/// Names of programs that are often used in tests, each with its Debian package.
const PACKAGES: &[(&str, &str)] = &[
    ("ab", "apache2-utils"),
    ("curl", "curl"),
    ("dig", "bind9-dnsutils"),
    ("dnsmasq", "dnsmasq-base"),
    ("etcd", "etcd-server"),
    ("etcdctl", "etcd-client"),
    ("haproxy", "haproxy"),
    ("iperf3", "iperf3"),
    ("java", "default-jre-headless"),
    ("jq", "jq"),
    ("kcat", "kcat"),
    ("memcached", "memcached"),
    ("memcstat", "libmemcached-tools"),
    ("mosquitto", "mosquitto"),
    ("mysql", "default-mysql-client"),
    ("named", "bind9"),
    ("nc", "netcat-openbsd"),
    ("nginx", "nginx"),
    ("node", "nodejs"),
    ("openssl", "openssl"),
    ("ping", "iputils-ping"),
    ("psql", "postgresql-client"),
    ("pg_ctlcluster", "postgresql-common"),
    ("python3", "python3"),
    ("rabbitmq-server", "rabbitmq-server"),
    ("redis-benchmark", "redis-tools"),
    ("redis-cli", "redis-tools"),
    ("redis-sentinel", "redis-sentinel"),
    ("redis-server", "redis-server"),
    ("socat", "socat"),
    ("ssh", "openssh-client"),
    ("tcpdump", "tcpdump"),
    ("unbound", "unbound"),
    ("wget", "wget"),
    ("wrk", "wrk"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_of_a_line_are_found() {
        let cases: [(&str, &[&str]); 18] = [
            ("nginx -c x", &["nginx"]),
            ("  A=1 B=\"2 3\" exec nginx", &["nginx"]),
            ("initdb -D d && exec postgres -D d", &["initdb", "postgres"]),
            (
                "curl x | jq . ; sleep 1 # ; not-this",
                &["curl", "jq", "sleep"],
            ),
            ("echo 'a; b' && cat f 2>&1 | wc -l", &["cat", "wc"]),
            ("cat \\\n f; ls", &["cat", "ls"]),
            ("for i in 1 2; do curl x; done", &[]),
            ("if true; then curl x; fi", &[]),
            ("f() { true; }; f", &[]),
            ("f () { true; }; f", &[]),
            (
                "mkdir d && (echo a; head -c 1 /dev/zero) > d/a &&\nexec nginx -p d",
                &["mkdir", "head", "nginx"],
            ),
            ("$PROGRAM x; \"$HOME/a\" y", &[]),
            ("PATH=$(echo /x):$PATH; initdb", &[]),
            ("a=$(redis-cli -h x get k | head -1)\nredis-cli set $a", &[]),
            ("a=`date -u` curl x", &[]),
            ("/usr/bin/nginx; ./server", &["/usr/bin/nginx", "./server"]),
            ("exec >log; ls", &["ls"]),
            ("", &[]),
        ];
        for (line, expected) in cases {
            assert_eq!(programs(line), expected, "{line}");
        }
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let nowhere = OsStr::new("/nowhere");
        let told = |line| missing_of_line(line, nowhere).map(|missing| missing.to_string());
        assert_eq!(
            told("dig @s x").as_deref(),
            Some("dig is not on the PATH: install the package bind9-dnsutils (Debian, Ubuntu)")
        );
        assert_eq!(
            told("my-server").as_deref(),
            Some("my-server is not on the PATH")
        );
        assert_eq!(
            told("./my-server").as_deref(),
            Some("there is no program ./my-server")
        );
        assert_eq!(told("echo; true"), None);
        let path = std::env::var_os("PATH").unwrap_or_default();
        assert_eq!(missing_of_words("sh", &path), None);
        assert!(missing_of_words("sh", nowhere).is_some());
    }

    #[test]
    fn packages_stand_in_order() {
        assert!(WORDS.is_sorted());
    }
}
