//! The traffic of each network interface, as the system counts it.

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counts {
    pub(super) received_bytes: u64,
    pub(super) received_packets: u64,
    pub(super) sent_bytes: u64,
    pub(super) sent_packets: u64,
}

#[cfg(target_os = "linux")]
pub(super) use linux::Interfaces;

#[cfg(not(target_os = "linux"))]
pub(super) use other::Interfaces;

/// Reads the counts of all interfaces from one file (proc_pid_net(5)). The crate sysinfo would read nine files for each
/// interface.
#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::Read as _;

    use super::Counts;

    /// The most bytes of the file that are read. An interface takes about 120 bytes, so this is enough for a machine
    /// with thousands of containers.
    const FILE_BYTES_MAX: u64 = 4 << 20;

    #[derive(Debug, Default)]
    pub(in super::super) struct Interfaces {
        text: Vec<u8>,
    }

    impl Interfaces {
        /// Calls `each` with the name and the counts of every interface. Makes no call if the system does not provide
        /// them.
        pub(in super::super) fn read(&mut self, mut each: impl FnMut(&str, Counts)) {
            self.text.clear();
            let read = File::open("/proc/net/dev")
                .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut self.text));
            if let Err(error) = read {
                tracing::debug!("no network counts: {error}");
                return;
            }
            for line in String::from_utf8_lossy(&self.text).lines() {
                if let Some((name, counts)) = parse(line) {
                    each(name, counts);
                }
            }
        }
    }

    /// Parses a line: `name:`, then `bytes packets errs drop fifo frame compressed multicast`, then the same for sent
    /// traffic. Returns `None` for the two header lines, which have no such numbers.
    fn parse(line: &str) -> Option<(&str, Counts)> {
        let (name, numbers) = line.split_once(':')?;
        let mut numbers = numbers.split_ascii_whitespace().map(str::parse);
        let mut number = |skipped| numbers.nth(skipped)?.ok();
        let counts = Counts {
            received_bytes: number(0)?,
            received_packets: number(0)?,
            sent_bytes: number(6)?,
            sent_packets: number(0)?,
        };
        Some((name.trim_ascii(), counts))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_line_of_the_system_is_understood() {
            // With and without a blank before the numbers: old kernels leave it out.
            for line in [
                "  eth0: 779006069   30359    1    2    3     4          5         6  2232862   20312    0    0    0     0       0          0",
                "eth0:779006069 30359 1 2 3 4 5 6 2232862 20312 0 0 0 0 0 0",
            ] {
                let counts = Counts {
                    received_bytes: 779_006_069,
                    received_packets: 30_359,
                    sent_bytes: 2_232_862,
                    sent_packets: 20_312,
                };
                assert_eq!(parse(line), Some(("eth0", counts)));
            }
        }

        #[test]
        fn headings_and_half_lines_are_left_out() {
            for line in [
                "Inter-|   Receive                                                |  Transmit",
                " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets",
                "lo: 1 2 3",
                "lo: 1 x 0 0 0 0 0 0 3 4 0 0 0 0 0 0",
                "",
            ] {
                assert_eq!(parse(line), None, "{line:?}");
            }
        }

        #[test]
        fn loopback_is_among_those_of_this_machine() {
            let mut names = Vec::new();
            let mut interfaces = Interfaces::default();
            interfaces.read(|name, _| names.push(name.to_owned()));
            assert!(names.iter().any(|name| name == "lo"), "{names:?}");
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use sysinfo::Networks;

    use super::Counts;

    #[derive(Debug, Default)]
    pub(in super::super) struct Interfaces {
        networks: Option<Networks>,
    }

    impl Interfaces {
        /// Calls `each` with the name and the counts of every interface. Makes no call if the system does not provide
        /// them.
        pub(in super::super) fn read(&mut self, mut each: impl FnMut(&str, Counts)) {
            if self.networks.is_none() {
                self.networks = Networks::new().ok();
            }
            let Some(networks) = &mut self.networks else { return };
            networks.refresh(true);
            for (name, interface) in &*networks {
                let counts = Counts {
                    received_bytes: interface.total_received(),
                    received_packets: interface.total_packets_received(),
                    sent_bytes: interface.total_transmitted(),
                    sent_packets: interface.total_packets_transmitted(),
                };
                each(&name.to_string_lossy(), counts);
            }
        }
    }
}
