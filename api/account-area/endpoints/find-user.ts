import type { WebUser } from '../../../shared/account-area/web-models.ts';
import { unauthenticated } from '../session-errors.ts';
import { currentSession } from '../steps/authenticate-session.ts';
import type { ApiContext } from '../../http/request/context.ts';
import type { Services } from '../../services.ts';

/** Finds the user of the session. @throws AppError `unauthenticated` if the user is banned */
export async function findUser(services: Services, context: ApiContext): Promise<WebUser> {
  const { userId } = await currentSession(services, context);
  const user = await services.web.users.findById(userId);
  if (user === null || user.bannedAt !== null)
    throw unauthenticated(
      'The user of this session is banned. Contact support to find out why.',
      'Пользователь этой сессии заблокирован. Чтобы узнать причину, обратитесь в поддержку.',
    );
  return user;
}
