/** Up to so many inputs under way an account's embeddings go the quick way. */
const quickInputs = 1_024;

/**
 * The class of work of an account that has so many inputs under way: 0 goes before all others, and each further class has
 * twice as many under way as the one before. Pure.
 */
export function chooseShareClass(inputsUnderWay: number): number {
  return inputsUnderWay <= quickInputs ? 0 : 1 + Math.floor(Math.log2(inputsUnderWay / quickInputs));
}
