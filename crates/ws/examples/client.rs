//! Sends a greeting and prints the answer: `cargo run --package anemone-ws --example client ws://127.0.0.1:PORT/`

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("usage: client URL")?;
    let mut socket = anemone_ws::connect(&url).await?;
    socket.send("hello").await?;
    eprintln!("{:?}", socket.recv().await?);
    Ok(socket.close(None).await?)
}
