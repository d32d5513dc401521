/** The page about a path at which there is nothing: its words need no script, only the places in the header do. */
import { showPlaces } from "../page/places.js";

void showPlaces();
