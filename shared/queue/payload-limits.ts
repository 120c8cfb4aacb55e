/** The largest that travels inside an item or a frame; what is larger goes through the payload store. */
export const maxInlineBytes = 64 * 1024;
