// Hides and shows contenders, and tells the figure of the point that is nearest to the pointer.
for (const figure of document.querySelectorAll("figure")) {
  const plot = figure.querySelector(".plot");
  const tip = plot.querySelector(".tip");
  const layers = [...plot.querySelectorAll("[data-of]")];
  for (const box of figure.querySelectorAll("[data-layer]")) {
    box.addEventListener("change", () => { layers[Number(box.dataset.layer)].hidden = !box.checked; });
  }
  plot.addEventListener("pointermove", ({ clientX, clientY }) => {
    const { left, top, width, height } = plot.getBoundingClientRect();
    const scale = width / Number(plot.querySelector("svg").getAttribute("width"));
    let nearest = null;
    for (const layer of layers.filter((layer) => !layer.hidden)) {
      for (const [x, y, words] of JSON.parse(layer.dataset.points)) {
        const far = Math.hypot(x * scale - (clientX - left), y * scale - (clientY - top));
        if (!nearest || far < nearest.far) nearest = { far, x: x * scale, y: y * scale, words };
      }
    }
    tip.hidden = !nearest || nearest.far > 40;
    if (tip.hidden) return;
    tip.textContent = nearest.words;
    tip.style.left = `${Math.min(nearest.x + 10, width - tip.offsetWidth)}px`;
    tip.style.top = `${Math.min(nearest.y + 10, height - tip.offsetHeight)}px`;
  });
  plot.addEventListener("pointerleave", () => { tip.hidden = true; });
}
