/** Opens the connection while the other modules of the page load: the first run begins as soon as they are there. */
import { learnClock } from "../server.js";

learnClock().catch(() => {}); // who needs the connection finds out what is wrong with it
