//! A thread of a running server that panics, while others serve.

use std::io::{Read, Write};
use std::time::Duration;

use anemone_hub::{Epoch, Retention};
use anemone_testing::multiplexed::framed;
use anemone_testing::{connect, within};

use super::*;

#[tokio::test]
async fn a_loop_that_panics_is_told_of_and_the_server_can_be_stopped() {
    let mut options = Options::new(([127, 0, 0, 1], 0).into());
    options.tcp = options.listen[0].address();
    options.threads = NonZero::new(2);
    let hub = Hub::new(Epoch::from_bits(7));
    hub.ensure("wind".parse().unwrap(), Retention::default()).unwrap();
    let mut server = Server::bind(options, hub).unwrap();
    // More than a clock has room for: no limit that is checked can be so.
    Arc::get_mut(&mut server.site).unwrap().limits.heartbeat = Duration::MAX;
    let running = server.start().unwrap();
    let failed = running.failed();
    let mut reader = connect(running.tcp_addr().unwrap());
    reader.write_all(&framed(b"GET a /topics/wind")).unwrap();
    within(failed).await;
    // Its connections are over, and so is the server when it is stopped.
    let _ = reader.read_to_end(&mut Vec::new());
    running.stop().await;
}
