/** `rejected`: before a model was called, such as for want of money. Lists have those only if they are asked for. */
export const requestOutcomes = ['success', 'error', 'rejected'] as const;
export type RequestOutcomeName = (typeof requestOutcomes)[number];
