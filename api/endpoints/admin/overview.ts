import { AppError } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import { defineAdminEndpoint } from './define-admin-endpoint.ts';

export const getOverview = defineAdminEndpoint(operations.getOverview, () => () => {
  throw new AppError('service_unavailable');
});
