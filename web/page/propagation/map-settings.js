/** The settings of the maps: contour lines, the strength of the colours, and tiles of the web below. */
import { setText } from "../element.js";
import { BaseTiles } from "./base-tiles.js";
import { readLevels } from "./contours.js";
import { element, input } from "./elements.js";
import { webTiles } from "./projection.js";

/** The width of the map with which the URL of the tiles is tried. */
const TRIED_PX = 500;

export class MapSettings {
  #stage;
  #tiles;

  /**
   * @param {import("./pane.js").Stage} stage
   * @param {() => void} redraw
   */
  constructor(stage, redraw) {
    this.#stage = stage;
    this.#tiles = new BaseTiles(redraw, (words, isFault) => {
      setText(element("#tiles-said"), words);
      element("#tiles-said").classList.toggle("failure", isFault);
    });
    input("#levels").addEventListener("input", () => {
      stage.contours = readLevels(input("#levels").value);
      const { fault } = stage.contours;
      setText(element("#levels-fault"), fault ?? "");
      input("#levels").setAttribute("aria-invalid", String(fault !== null));
      redraw();
    });
    input("#opacity").addEventListener("input", () => {
      stage.opacity = Number(input("#opacity").value);
      redraw();
    });
    input("#tiles").addEventListener("change", () => {
      this.useTiles();
      redraw();
    });
  }

  /** Draws the chosen tiles below the values, if the area has degrees. */
  useTiles() {
    const [stage, tiles] = [this.#stage, this.#tiles];
    const { frame } = stage;
    tiles.use(input("#tiles").value.trim(), frame.isDegrees);
    stage.tileOf = tiles.isUsed ? (tile) => tiles.get(tile) : null;
    if (!tiles.isUsed) return;
    // A map out of view is not drawn, so one tile is asked for here: what is said of the tiles stands beside their address.
    const [tile] = webTiles(frame, { x: 0, y: 0 }, { x: frame.width, y: frame.height }, TRIED_PX / frame.width);
    if (tile) tiles.get(tile);
  }
}
