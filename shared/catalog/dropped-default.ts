/** An entry of `drops` that leaves out the gateway's own default of the temperature, but not what a caller sets. */
export const droppedDefault = 'default:temperature';
